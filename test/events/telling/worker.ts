import { runWorker } from "../../../worker/process/run-worker.ts";
import { watchPriceRun } from "./watch-price.ts";

await runWorker({ functions: [watchPriceRun] });
