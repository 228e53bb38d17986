/** `durable-mcp-edge/worker`: the long-lived worker process, which executes the jobs of a deployment. */
export { runWorker, type WorkerOptions } from "./worker.ts";
