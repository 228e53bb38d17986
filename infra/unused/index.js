/** What the conformance suite takes from `@octokit/rest`, for a command that asks GitHub about a repository. */
export const Octokit = undefined;
