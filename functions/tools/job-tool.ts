import type * as z from "zod";
import { awaitSettled } from "../await.ts";
import { presentJob, structured } from "../present.ts";
import { type InputRequiredResult, isInputRequired } from "../protocol.ts";
import type { DurablePromise } from "../resonate/store.ts";
import { JobOutput } from "../status.ts";
import { describeTool, type Tool, type ToolContext, type ToolDescription } from "./tool.ts";

/** How long a call waits for its job before it answers with the job's name, in milliseconds: less than clients do. */
const PATIENCE = 45_000;

/**
 * Makes a tool whose work is one job. To a client that understands tasks a call is the task, at once; any other waits
 * for the result, and gets the job's name and how to collect it when that takes long.
 */
export function defineJobTool<Input extends z.ZodObject>(
  tool: Omit<ToolDescription<Input, typeof JobOutput>, "output" | "waits"> & {
    tasksOnly?: boolean;
    /** Starts the job, or asks for input first. */
    start(args: z.output<Input>, context: ToolContext): Promise<DurablePromise | InputRequiredResult>;
  },
): Tool {
  const start: Tool["start"] = (args, context) => tool.start(args as z.output<Input>, context);
  return {
    ...describeTool({ ...tool, output: JobOutput, waits: !tool.tasksOnly }),
    ...(tool.tasksOnly && { tasksOnly: true }),
    start,
    async call(args, context) {
      const started = await tool.start(args as z.output<Input>, context);
      if (isInputRequired(started)) return started;
      let settled = started.state === "pending" ? undefined : started;
      if (!settled) {
        await awaitSettled(context.store, [started.name], {
          timeout: PATIENCE,
          signal: context.signal,
          onSettled: (_name, promise) => {
            settled = promise;
          },
        });
      }
      if (settled) return presentJob(settled);
      const note = `Still running; it goes on by itself. Collect the result with await_result(job_names: ["${started.name}"]).`;
      return structured({ job_name: started.name, status: "running", note });
    },
  };
}
