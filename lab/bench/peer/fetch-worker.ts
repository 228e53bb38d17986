/** The worker for the tool that both servers have. */
import { runWorker } from "../../../worker/worker.ts";
import { fetchOnceRun } from "./fetch.run.ts";

await runWorker({ functions: [fetchOnceRun] });
