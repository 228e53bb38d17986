/** The product's edge, with the fixture tools besides its own. */
import { createEdge } from "../../functions/edge.ts";
import { tools } from "../../tools/index.ts";
import { CONTENT_TOOLS } from "./content-tools.ts";
import { TASK_TOOLS } from "./task-tools.ts";

export { Listener } from "../../functions/edge.ts";
export { ResonateObject } from "../../functions/resonate-object.ts";
export { RunnerObject } from "../../functions/runner-object.ts";

export default createEdge({
  name: "durable-mcp-edge",
  title: "Durable MCP tools",
  version: "0.0.0",
  tools: [...tools, ...TASK_TOOLS, ...CONTENT_TOOLS],
});
