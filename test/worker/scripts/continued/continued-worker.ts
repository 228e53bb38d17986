import { runWorker } from "../../../../worker/worker.ts";
import { patrolRun } from "./continued-run.ts";

await runWorker({ functions: [patrolRun] });
