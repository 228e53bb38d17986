import * as z from "zod";
import { jobSnapshotOf } from "../../core/jobs/snapshot.ts";
import { jobName } from "../../core/tools/arguments.ts";
import { defineTool, refusal, ToolError } from "../../core/tools/tool.ts";
import { checkAnswer } from "../tasks/answer.ts";

const NAME = "answer_question";

/** JSON text: that of what is no text already. An object with no properties of its own is what some models cannot be told. */
const text = z.preprocess((value) => (typeof value === "string" ? value : JSON.stringify(value)), z.string());

export const answerQuestion = defineTool({
  name: NAME,
  title: "Answer a job's question",
  description:
    "Answer what a running job asks (waiting_for), where answered_by is anyone. What is asked of the user only the " +
    "user answers.",
  input: z.object({
    job_name: jobName,
    question: z.string().describe("Its key."),
    answer: text.describe('JSON that fits answer_schema, such as {"approved": true}; null declines.'),
  }),
  output: z.object({ job_name: z.string(), question: z.string(), answered: z.literal(true) }),
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  async run({ job_name, question: key, answer }, { store, signal }) {
    const refused = (reason: string) => new ToolError(refusal(NAME, [reason]));
    const promise = await store.get(job_name, signal);
    if (!promise)
      throw refused(`job_name: ${JSON.stringify(job_name)} names no job. Accepted: a name as tools returned it.`);
    const { questions } = await jobSnapshotOf(store, promise, signal);
    const open = questions.get(key);
    if (!open) {
      const keys = [...questions.keys()].join(", ");
      throw refused(
        keys === ""
          ? `${job_name} asks nothing now. Look at it with probe_status.`
          : `question: ${JSON.stringify(key)} is not open. Accepted: ${keys}.`,
      );
    }
    if (open.question.answeredBy !== "anyone") {
      throw refused(`only the user may answer "${open.question.message}", in a client that shows questions.`);
    }
    const content = jsonOf(answer);
    const response = content === null ? { action: "decline" } : { action: "accept", content };
    const fitted = checkAnswer(open.question, response);
    if ("reason" in fitted) {
      const schema = JSON.stringify(open.question.requestedSchema);
      throw refused(
        `answer: ${content === undefined ? "it is no JSON" : fitted.reason}. Accepted: JSON that fits ${schema}.`,
      );
    }
    await store.journals.answer(open.promiseId, fitted.answer);
    return { job_name, question: key, answered: true as const };
  },
});

/** Undefined for what is no JSON. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
