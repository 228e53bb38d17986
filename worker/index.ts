/** `durable-mcp-edge/worker`: the long-lived worker, which executes the jobs of a deployment. */
export { runWorker, type WorkerOptions } from "./process/run-worker.ts";
