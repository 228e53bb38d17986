/**
 * The function that a worker runs after a job was cancelled. It cancels the jobs that the cancelled job started and nobody else
 * wants. Then it runs the job's own function over its journal once more. The command at which that function waits throws the
 * cancellation, so that its `catch` and `finally` run. The function has a promise and a task of its own, a child of the job's
 * promise, so it completes even if workers die in the meantime.
 */
export const AFTER = "durable-mcp:after";
