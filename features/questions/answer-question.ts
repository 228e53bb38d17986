import * as z from "zod";
import { ANSWER_SUBJECT, builtInTool, giveAnswer, jobName, jsonText } from "../../core/tools/index.ts";

const TOOL_NAME = "answer_question";

export const answerQuestion = builtInTool({
  name: TOOL_NAME,
  title: "Answer a job's question",
  description: "Answer a job's question (waiting_for) whose answered_by is anyone; others only the user answers.",
  input: z.object({
    job_name: jobName,
    question: z.string().describe("Its key."),
    answer: jsonText.describe("JSON for answer_schema; null declines."),
  }),
  output: z.object({ job_name: z.string(), question: z.string(), answered: z.literal(true) }),
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  async run({ job_name, question, answer }, { store, signal }) {
    await giveAnswer(TOOL_NAME, { job_name, question, answer, isUser: false }, store, signal);
    return { job_name, question, answered: true as const, [ANSWER_SUBJECT]: { job: job_name } };
  },
});
