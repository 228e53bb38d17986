import packageJson from "../../package.json" with { type: "json" };
import { TASKS } from "../tasks/task.ts";

/** What the server says it is. */
export const IDENTITY = { name: packageJson.name, title: "Durable MCP tools", version: packageJson.version };

/** How the tools are meant to be used, for the model. */
export const INSTRUCTIONS = `\
Tools for work that outlasts a tool call. Starting a job returns a name at once; the job goes on by itself, survives \
crashes and restarts, and its result stays available under that name in every later conversation.
- Start: start_gathering (a month of historical weather) and set_timer return at once. Starting the same job again is \
safe: it finds the one that is there, and never runs it twice.
- Probe: probe_status and get_timer_status tell how jobs are without waiting.
- Await: await_result waits for results. Names it returns as running have not failed: await them again, or tell the \
user and come back later. Start several jobs first, then await them together.
- Later: keep the names (or start again with the same arguments) to collect results in another conversation; \
list_jobs finds names that were lost.
When a call fails because the Resonate server cannot be reached, repeat it as it was.`;

/** How long a client may keep what does not change between deployments; `ttlMs` in milliseconds. */
export const CACHE = { ttlMs: 5 * 60_000, cacheScope: "public" } as const;

/** What the server can do, for a client of an era that has tasks or not. */
export const capabilities = (tasks: boolean) => ({ tools: {}, ...(tasks && { extensions: { [TASKS]: {} } }) });
