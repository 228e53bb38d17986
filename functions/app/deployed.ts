/** What this Worker's script deploys, for its Durable Objects, which the runtime makes with the bindings alone. */
import type { Tool } from "../../core/author/tool.ts";
import type { Job } from "../../core/definitions/job.ts";

interface Deployed {
  jobs: readonly Job[];
  tools: readonly Tool[];
}

export const deployed: Deployed = { jobs: [], tools: [] };
