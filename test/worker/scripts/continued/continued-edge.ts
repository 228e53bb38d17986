import { createEdge } from "../../../../functions/edge.ts";
import { RunnerServer } from "../../../../worker/runner/runner-server.ts";
import { patrol } from "./continued.ts";

export { CallerObject, Listener } from "../../../../functions/edge.ts";
export { ResonateObject } from "../../../../functions/objects.ts";

export class RunnerObject extends RunnerServer {
  constructor(_state: object, env: object) {
    super(env, []);
  }
}

export default createEdge({ name: "continued", title: "Continued", version: "0.0.0", tools: [patrol] });
