/**
 * The function that a worker runs after a job was cancelled. It cancels the jobs that this one started and nobody else wants,
 * and runs the job's own function over its journal once more: that hears of the cancellation where it waits, so that its
 * `catch` and `finally` run. It is a task of its own, a child of the job's promise, so it is done even if workers die
 * meanwhile.
 */
export const AFTER = "durable-mcp:after";
