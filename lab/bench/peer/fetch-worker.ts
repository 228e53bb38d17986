/** The worker for the tool that both servers have. */
import { runWorker } from "../../../worker/process/run-worker.ts";
import { fetchOnceRun } from "./fetch.run.ts";

await runWorker({ functions: [fetchOnceRun] });
