/**
 * The function that a worker runs after a job was cancelled: it cancels the jobs that this one started and nobody else
 * wants. It is a task of its own, a child of the job's promise, so it is done even if workers die meanwhile.
 */
export const AFTER = "durable-mcp:after";
