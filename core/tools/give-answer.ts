/** Answers a job's question for a tool. */
import { currentJobOf } from "../jobs/current-job.ts";
import type { RemoteStore } from "../jobs/remote-store.ts";
import { exactJsonOf, MAX_DEPTH } from "../resonate/json.ts";
import { checkAnswer } from "./check-answer.ts";
import { refusal, ToolError } from "./tool.ts";

/** How much of an unknown question's key is repeated in a refusal, in characters. */
const MAX_SHOWN = 200;

/** An answer as a tool receives it. */
interface GivenAnswer {
  job_name: string;
  question: string;
  /** JSON as text; null declines. */
  answer: string;
  /** Whether the user gives it in person. */
  isUser: boolean;
}

/** Answers a question. @throws {ToolError} if the question is not open, if only the user may answer, or for a wrong answer */
export async function giveAnswer(
  tool: string,
  { job_name, question: key, answer, isUser }: GivenAnswer,
  store: RemoteStore,
  signal: AbortSignal,
): Promise<void> {
  const refused = (reason: string) => new ToolError(refusal(tool, [reason]));
  const promise = await store.get(job_name, signal);
  if (!promise)
    throw refused(`job_name: ${JSON.stringify(job_name)} names no job. Accepted: a name as tools returned it.`);
  const { questions } = await currentJobOf(store, promise, signal);
  const open = questions.get(key);
  if (!open) {
    const keys = [...questions.keys()].join(", ");
    throw refused(
      keys === ""
        ? `${job_name} asks nothing now. Look at it with probe_status.`
        : `question: ${JSON.stringify(key.slice(0, MAX_SHOWN))} is not open. Accepted: ${keys}.`,
    );
  }
  if (!isUser && open.question.answeredBy !== "anyone") {
    throw refused(
      `only the user may answer "${open.question.message}", in a client that shows questions or on the job's page, if any.`,
    );
  }
  // Parsed last: large JSON takes longer than all of the above.
  const content = exactJsonOf(answer);
  const response = content === null ? { action: "decline" } : { action: "accept", content };
  const checked =
    content === undefined
      ? { reason: `it is not JSON of up to ${MAX_DEPTH} levels` }
      : await checkAnswer(open.question, response);
  if ("reason" in checked) {
    const schema = JSON.stringify(open.question.requestedSchema);
    throw refused(`answer: ${checked.reason}. Accepted: JSON that fits ${schema}.`);
  }
  if (!(await store.feeds.answer(open.promiseId, checked.answer)))
    throw refused(`question: ${JSON.stringify(key)} was answered by somebody else meanwhile.`);
}
