/** What this Worker's script deploys, for its Durable Objects, which the runtime makes with the bindings alone. */
import type { Job } from "../../core/author/index.ts";
import type { Tool } from "../../core/tools/index.ts";

interface Definitions {
  jobs: readonly Job[];
  tools: readonly Tool[];
}

export const definitions: Definitions = { jobs: [], tools: [] };
