import * as z from "zod";
import { builtInTool, jobNames } from "../../core/tools/index.ts";

export const forgetJobs = builtInTool({
  name: "forget_jobs",
  title: "Forget jobs",
  description: "Remove your own ended jobs for good, with arguments and results.",
  input: z.object({ job_names: jobNames }),
  output: z.object({
    forgotten: z.array(z.string()).describe("Removed."),
    hidden: z
      .array(z.string())
      .optional()
      .describe("Left out of list_jobs: this server removes jobs by its retention."),
    running: z.array(z.string()).describe("Not ended, not touched: cancel first."),
    not_found: z.array(z.string()).describe("No such job, or none of your own."),
  }),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  async run({ job_names }, { store }) {
    const outcomes = await Promise.all(job_names.map(async (name) => (await store.forget(name)) ?? "not_found"));
    return {
      forgotten: [],
      running: [],
      not_found: [],
      ...Object.groupBy(job_names, (_name, i) => outcomes[i] ?? "not_found"),
    };
  },
});
