/** The worker: executes the jobs, on Node. */
import { runWorker } from "durable-mcp-edge/worker";
import { runs } from "./tools/runs.ts";

await runWorker({ functions: runs });
