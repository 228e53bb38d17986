/** The worker of this deployment. */
import { runs } from "../tools/runs.ts";
import { runWorker } from "./worker.ts";

await runWorker({ functions: runs });
