/** The worker of this deployment. */
import { runs } from "../tools/runs.ts";
import { runWorker } from "./run.ts";

await runWorker({ tools: runs });
