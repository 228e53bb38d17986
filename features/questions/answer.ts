/** Gives the answers of a client to the questions of its job. */

import { type AnswerEntry, currentJobOf, type DurablePromise, type RemoteStore } from "../../core/jobs/index.ts";
import { checkAnswer } from "../../core/tools/index.ts";

/** An answer that does not fit its question, by the question's key. */
export interface InvalidAnswer {
  key: string;
  reason: string;
}

/**
 * Answers the open questions of a job that `responses` names, and ignores keys of questions that are unknown or answered. If an
 * answer does not fit its question, none is taken, and that answer is returned.
 */
export async function answerQuestions(
  store: RemoteStore,
  promise: DurablePromise,
  responses: Record<string, unknown>,
  signal?: AbortSignal,
): Promise<InvalidAnswer | undefined> {
  const { questions } = await currentJobOf(store, promise, signal);
  const answers: { promiseId: string; answer: AnswerEntry }[] = [];
  for (const [key, { promiseId, question }] of questions) {
    if (!Object.hasOwn(responses, key)) continue;
    const outcome = await checkAnswer(question, responses[key]);
    if ("reason" in outcome) return { key, reason: outcome.reason };
    answers.push({ promiseId, answer: outcome.answer });
  }
  await Promise.all(answers.map(({ promiseId, answer }) => store.feeds.answer(promiseId, answer)));
  return undefined;
}
