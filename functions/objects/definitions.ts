/** What this Worker's script deploys, for its Durable Objects, which the runtime makes with the bindings alone. */
import type { Job } from "../../core/author/job.ts";
import type { Tool } from "../../core/tools/tool.ts";

interface Definitions {
  jobs: readonly Job[];
  tools: readonly Tool[];
}

export const definitions: Definitions = { jobs: [], tools: [] };
