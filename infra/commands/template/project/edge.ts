/** The edge: answers MCP requests, on Cloudflare Workers. */
import { createEdge } from "durable-mcp-edge/edge";
import { tools } from "./tools/index.ts";

// Tells those who wait for jobs what has settled: a Durable Object, which wrangler.toml binds.
export { Listener } from "durable-mcp-edge/edge";

export default createEdge({ name: "my-server", version: "0.1.0", tools });
