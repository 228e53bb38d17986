/** The tools of the conformance suite whose work is a job. */
import { acceptedContent, inputRequired } from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Job } from "../../functions/jobs/index.ts";
import { startJob } from "../../functions/start.ts";
import { defineJobTool } from "../../functions/tools/job-tool.ts";
import type { Tool } from "../../functions/tools/tool.ts";
import { confirmDelete, failingJob, hello, multiInput, protocolErrorJob, slowCompute } from "./jobs.ts";

function taskTool<Input extends z.ZodObject>(
  name: string,
  job: Job<z.output<Input>>,
  input: Input,
  tasksOnly = false,
): Tool {
  return defineJobTool({
    name,
    title: name,
    description: `Starts the fixture job ${job.func}.`,
    input,
    annotations: { readOnlyHint: true },
    tasksOnly,
    start: (args, { store, now }) => startJob(store, job, args, now),
  });
}

const Name = z.object({ name: z.string() });

const toolWithTask = defineJobTool({
  name: "test_tool_with_task",
  title: "test_tool_with_task",
  description: "Asks for a name, and then greets it as a task.",
  input: z.object({}),
  annotations: { readOnlyHint: true },
  tasksOnly: true,
  async start(_args, { store, now, inputResponses }) {
    const answer = acceptedContent(inputResponses, "user_name", Name);
    if (answer) return startJob(store, hello, answer, now);
    return inputRequired({
      inputRequests: { user_name: inputRequired.elicit({ message: "What is your name?", requestedSchema: Name }) },
    });
  },
});

export const TASK_TOOLS: readonly Tool[] = [
  taskTool("slow_compute", slowCompute, z.object({ seconds: z.number(), label: z.string() })),
  taskTool("failing_job", failingJob, z.object({}), true),
  taskTool("protocol_error_job", protocolErrorJob, z.object({})),
  taskTool("confirm_delete", confirmDelete, z.object({ filename: z.string() })),
  taskTool("multi_input", multiInput, z.object({ name: z.string().default("once") })),
  toolWithTask,
];
