/**
 * What is done when a job has been cancelled: the jobs that it started, and that nobody else wants, are cancelled too. It
 * is a task of its own, a child of the job's promise, so that it is done whatever dies meanwhile.
 */

/** The function that a worker runs for it. */
export const AFTER = "durable-mcp:after";

export const afterId = (promiseId: string): string => `${promiseId}:x`;
