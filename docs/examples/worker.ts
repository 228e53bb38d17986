import { runWorker } from "../../worker/index.ts";
import { crawlRun } from "./crawl/crawl.run.ts";
import { exportRun } from "./export/export.run.ts";
import { fulfilRun, parcelRun } from "./fulfil/fulfil.run.ts";
import { importRun } from "./import/import.run.ts";
import { invoiceRun } from "./invoice/invoice.run.ts";
import { nightlyRun } from "./nightly/nightly.run.ts";
import { orderRun } from "./order/order.run.ts";
import { purchaseRun } from "./purchase/purchase.run.ts";
import { quotesRun } from "./quotes/quotes.run.ts";
import { releaseRun } from "./release/release.run.ts";
import { researchRun } from "./research/research.run.ts";
import { titlesRun } from "./titles/titles.run.ts";
import { tripRun } from "./trip/trip.run.ts";
import { watchRun } from "./watch/watch.run.ts";

await runWorker({
  functions: [
    releaseRun,
    titlesRun,
    invoiceRun,
    orderRun,
    tripRun,
    purchaseRun,
    researchRun,
    nightlyRun,
    crawlRun,
    exportRun,
    importRun,
    fulfilRun,
    parcelRun,
    quotesRun,
    watchRun,
  ],
});
