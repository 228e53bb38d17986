/** The edge: answers MCP requests, on Cloudflare Workers. */
import { createEdge, resonateObject, runnerObject } from "durable-mcp-edge/edge";
import { tools } from "../tools/index.ts";

// Durable Objects, which wrangler.toml binds. `Listener` notifies waiting calls of ended jobs; `CallerObject` holds a
// caller's quota and list of jobs.
export { CallerObject, Listener } from "durable-mcp-edge/edge";

// The account's own Resonate server, and the runners of jobs that no worker is connected for. Both are loaded when needed.
export const ResonateObject = resonateObject(() => import("durable-mcp-edge/resonate"));
export const RunnerObject = runnerObject(
  () => import("durable-mcp-edge/runner"),
  () => import("../tools/runs.ts"),
);

export default createEdge({ name: "my-server", version: "0.1.0", tools });
