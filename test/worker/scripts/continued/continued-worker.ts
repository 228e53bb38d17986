import { runWorker } from "../../../../worker/process/run-worker.ts";
import { patrolRun } from "./continued-run.ts";

await runWorker({ functions: [patrolRun] });
