/** The product's edge with one more tool, whose job runs in a worker written with one of Resonate's SDKs. */
import { countWords } from "../../docs/examples/sdk/words.ts";
import { createEdge } from "../../functions/edge.ts";
import { tools } from "../../tools/index.ts";

export { CallerObject, Listener } from "../../functions/edge.ts";
export { ResonateObject, RunnerObject } from "../../functions/objects.ts";

export default createEdge({
  name: "durable-mcp-edge",
  title: "Durable MCP tools",
  version: "0.0.0",
  tools: [...tools, countWords],
});
