/**
 * What this Worker's script deploys, for its Durable Objects: the runtime makes them with the bindings alone. It is kept at the
 * isolate's global object: the entry sets it, and the module of the caller's object, which has copies of its own, reads it.
 */
import type { Tool } from "../../core/author/tool.ts";
import type { Job } from "../../core/definitions/job.ts";

interface Deployed {
  jobs: readonly Job[];
  tools: readonly Tool[];
}

const KEY: unique symbol = Symbol.for("durable-mcp-edge:deployed");
const isolate = globalThis as { [KEY]?: Deployed };

isolate[KEY] ??= { jobs: [], tools: [] };

export const deployed: Deployed = isolate[KEY];
