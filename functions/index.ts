/** The edge of this deployment. */
import { tools } from "../tools/index.ts";
import { createEdge } from "./edge.ts";

export { CallerObject, Listener } from "./edge.ts";
export { ResonateObject, RunnerObject } from "./objects.ts";

// A test checks that the version is package.json's. An import would put all of that file into the bundle.
export default createEdge({
  name: "durable-mcp-edge",
  title: "Durable MCP tools",
  version: "0.1.0",
  description: "Historical weather and timers as durable jobs: started now, collected from any later session.",
  // Some hosts show a model only the first line.
  instructions:
    "Past daily weather of any place since 1940, durable timers and reminders: start a job, then collect its result with await_result, today or later.",
  tools,
});
