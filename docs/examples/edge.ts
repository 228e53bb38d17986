import { createEdge } from "../../functions/edge.ts";
import { invoice } from "./invoice.ts";
import { order } from "./order.ts";
import { release } from "./release.ts";
import { titles } from "./titles.ts";

export { CallerObject, Listener } from "../../functions/edge.ts";
export { ResonateObject, RunnerObject } from "../../functions/objects.ts";

export default createEdge({
  name: "examples",
  title: "The examples of the documentation",
  version: "1.0.0",
  tools: [release, titles, invoice, order],
});
