/** The tools that the conformance suite expects and whose work is a job. */
import { acceptedContent, inputRequired } from "@modelcontextprotocol/server";
import * as z from "zod";
import { defineDurableTool, type Job, type Tool } from "../../core/index.ts";
import { startJob } from "../../core/jobs/start.ts";
import { confirmDelete, failingJob, hello, multiInput, openQuestion, protocolErrorJob, slowCompute } from "./jobs.ts";

function taskTool<Args>(name: string, job: Job<Args>, input: z.ZodType<Args>, tasksOnly = false): Tool {
  return defineDurableTool({
    job,
    name,
    title: name,
    description: `Starts the fixture job ${job.kind}.`,
    input,
    annotations: { readOnlyHint: true },
    tasksOnly,
  });
}

const Name = z.object({ name: z.string() });

/** Asks a question before the job exists, which the protocol allows, and tools of the public interface never do. */
const toolWithTask: Tool = {
  ...taskTool("test_tool_with_task", hello, z.object({}) as never, true),
  async start(_args, { store, now, inputResponses }) {
    const answer = acceptedContent(inputResponses, "user_name", Name);
    if (answer) return startJob(store, hello, answer, now);
    return inputRequired({
      inputRequests: { user_name: inputRequired.elicit({ message: "What is your name?", requestedSchema: Name }) },
    });
  },
};

export const TASK_TOOLS: readonly Tool[] = [
  taskTool("slow_compute", slowCompute, z.object({ seconds: z.number(), label: z.string() })),
  taskTool("failing_job", failingJob, z.object({}), true),
  taskTool("protocol_error_job", protocolErrorJob, z.object({})),
  taskTool("confirm_delete", confirmDelete, z.object({ filename: z.string() })),
  taskTool("multi_input", multiInput, z.object({ name: z.string().default("once") })),
  taskTool("open_question", openQuestion, z.object({ name: z.string() })),
  toolWithTask,
];
