/** Whether an answer fits the question that it is given to. */
import { AnswerEntry, type QuestionEntry } from "../../core/jobs/feed/progress-feed.ts";
import { formOf } from "./form.ts";

/** The longest answer to a question that is taken, in characters of JSON. */
const MAX_ANSWER = 10_000;

const FORM = 'an object with action "accept" and content, or action "decline" or "cancel", is required';

/** The answer, or what is wrong with it, without a full stop. */
export function checkAnswer(
  { requestedSchema }: QuestionEntry,
  response: unknown,
): { answer: AnswerEntry } | { reason: string } {
  const answer = AnswerEntry.safeParse(response);
  if (!answer.success) return { reason: FORM };
  const length = JSON.stringify(answer.data).length;
  if (length > MAX_ANSWER) return { reason: `it has ${length} characters as JSON; up to ${MAX_ANSWER} are accepted` };
  if (answer.data.action === "accept") {
    const { error } = formOf(requestedSchema).safeParse(answer.data.content);
    const reason = error?.issues.map(({ path, message }) => [...path, message].join(": ")).join("; ");
    if (reason !== undefined) return { reason: reason.replace(/\.$/, "") };
  }
  return { answer: answer.data };
}
