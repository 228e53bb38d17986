import { runWorker } from "../../worker/index.ts";
import { invoiceRun } from "./invoice.run.ts";
import { orderRun } from "./order.run.ts";
import { releaseRun } from "./release.run.ts";
import { titlesRun } from "./titles.run.ts";

await runWorker({ functions: [releaseRun, titlesRun, invoiceRun, orderRun] });
