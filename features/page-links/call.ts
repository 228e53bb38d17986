/** Gives answers the addresses of jobs' pages, for the user to look at. */
import type { Caller } from "../../core/author/index.ts";
import type { CallFeature } from "../../core/tools/index.ts";

/** `urlOf`: the address of a job's page for its caller; undefined if links are off. */
export const pageLinks = (urlOf: (job: string, caller: Caller) => Promise<string | undefined>): CallFeature => ({
  context: ({ scope }) => ({ pageOf: (job) => urlOf(job, scope.caller) }),
});
