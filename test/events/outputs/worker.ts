import { runWorker } from "../../../worker/worker.ts";
import { watchPriceRun } from "./watch-price.ts";

await runWorker({ functions: [watchPriceRun] });
