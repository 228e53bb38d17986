import { createEdge } from "../../functions/edge.ts";
import { crawl } from "./crawl/crawl.ts";
import { exported } from "./export/export.ts";
import { fulfilled, parcel } from "./fulfil/fulfil.ts";
import { imported } from "./import/import.ts";
import { invoice } from "./invoice/invoice.ts";
import { nightly } from "./nightly/nightly.ts";
import { order } from "./order/order.ts";
import { purchase } from "./purchase/purchase.ts";
import { quotes } from "./quotes/quotes.ts";
import { release } from "./release/release.ts";
import { research } from "./research/research.ts";
import { titles } from "./titles/titles.ts";
import { trip } from "./trip/trip.ts";
import { watch } from "./watch/watch.ts";

export { CallerObject, Listener } from "../../functions/edge.ts";
export { ResonateObject, RunnerObject } from "../../functions/objects.ts";

export default createEdge({
  name: "examples",
  title: "The examples of the documentation",
  version: "1.0.0",
  tools: [
    ...[release, titles, invoice, order],
    ...[trip, purchase, research, nightly, crawl, exported, imported, fulfilled, quotes, watch],
  ],
  jobs: [parcel],
});
