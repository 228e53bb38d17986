/** Whether an answer fits the question that it is given to. */
import { fromJsonSchema } from "@modelcontextprotocol/server";
import { AnswerEntry, type QuestionEntry } from "../../core/jobs/journal.ts";

/** The longest answer to a question that is taken, in characters of JSON. */
const MAX_ANSWER = 10_000;

const FORM = 'an object with action "accept" and content, or action "decline" or "cancel", is required';

/** The answer, or what is wrong with it, without a full stop. */
export async function checkAnswer(
  { requestedSchema }: QuestionEntry,
  response: unknown,
): Promise<{ answer: AnswerEntry } | { reason: string }> {
  const answer = AnswerEntry.safeParse(response);
  if (!answer.success) return { reason: FORM };
  const length = JSON.stringify(answer.data).length;
  if (length > MAX_ANSWER) return { reason: `it has ${length} characters as JSON; up to ${MAX_ANSWER} are accepted` };
  if (answer.data.action === "accept") {
    const schema = fromJsonSchema(requestedSchema as Parameters<typeof fromJsonSchema>[0]);
    const checked = await schema["~standard"].validate(answer.data.content);
    const reason = checked.issues?.map((issue) => issue.message).join("; ");
    if (reason !== undefined) return { reason: reason.replace(/\.*$/, "") };
  }
  return { answer: answer.data };
}
