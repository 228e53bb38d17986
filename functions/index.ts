/** The edge: a Cloudflare Worker that answers MCP requests and keeps no state. */
import { createApp } from "./app.ts";
import { JOBS } from "./jobs/index.ts";
import { TOOLS } from "./tools/index.ts";

export default createApp({ jobs: JOBS, tools: TOOLS });
