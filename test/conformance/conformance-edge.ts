/** The product's edge, with the fixture tools added to its own. */
import { createEdge } from "../../functions/edge.ts";
import { tools } from "../../tools/index.ts";
import { runs } from "../../tools/runs.ts";
import { RunnerServer } from "../../worker/runner/runner-server.ts";
import { CONTENT_TOOLS } from "./content-tools.ts";
import { fixtureFunctions } from "./functions.ts";
import { TASK_TOOLS } from "./task-tools.ts";

export { CallerObject, Listener } from "../../functions/edge.ts";
export { ResonateObject } from "../../functions/objects.ts";

/** The product's runner, with the fixture functions added to its own. */
export class RunnerObject extends RunnerServer {
  constructor(_state: object, env: object) {
    super(env, [...runs, ...fixtureFunctions]);
  }
}

export default createEdge({
  name: "durable-mcp-edge",
  title: "Durable MCP tools",
  version: "0.0.0",
  tools: [...tools, ...TASK_TOOLS, ...CONTENT_TOOLS],
});
