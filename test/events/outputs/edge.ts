/** An edge with one tool, whose job sends events. */
import { createEdge } from "../../../functions/edge.ts";
import { RunnerServer } from "../../../worker/runner/runner-server.ts";
import { watchPrice, watchPriceRun } from "./watch-price.ts";

export { CallerObject, Listener } from "../../../functions/edge.ts";
export { ResonateObject } from "../../../functions/objects.ts";

export class RunnerObject extends RunnerServer {
  constructor(_state: object, env: object) {
    super(env, [watchPriceRun]);
  }
}

export default createEdge({ name: "telling", title: "Telling", version: "0.0.0", tools: [watchPrice] });
