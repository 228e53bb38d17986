/**
 * What this Worker's script deploys, for its Durable Objects, which the runtime makes with the bindings alone. The isolate's
 * global object holds it: the entry sets it, and the bundled module of the caller's object, with its own copy of this file,
 * reads it.
 */

import type { Job } from "../../core/author/job.ts";
import type { Tool } from "../../core/tools/tool.ts";

interface Deployed {
  jobs: readonly Job[];
  tools: readonly Tool[];
}

const KEY: unique symbol = Symbol.for("durable-mcp-edge:deployed");
const isolate = globalThis as { [KEY]?: Deployed };

isolate[KEY] ??= { jobs: [], tools: [] };

export const deployed: Deployed = isolate[KEY];
