/** The edge: answers MCP requests, on Cloudflare Workers. */
import { createEdge, resonateObject, runnerObject } from "durable-mcp-edge/edge";
import { tools } from "../tools/index.ts";

// Durable Objects, which wrangler.toml binds. These tell those who wait for jobs what has settled, and hold callers' quotas and lists.
export { CallerObject, Listener } from "durable-mcp-edge/edge";

// The account's own Resonate server, and what runs jobs for which no worker is connected: loaded when they are needed.
export const ResonateObject = resonateObject(() => import("./modules/resonate.js"));
export const RunnerObject = runnerObject(() => import("./modules/runner.js"));

export default createEdge({ name: "my-server", version: "0.1.0", tools });
