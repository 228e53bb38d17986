/** Checks answers to questions of jobs, and gives them to the jobs. */

import { currentJobOf } from "../../core/jobs/current-job.ts";
import type { DurablePromise } from "../../core/jobs/durable-promise.ts";
import { AnswerEntry, type QuestionEntry } from "../../core/jobs/feed/progress-feed.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";

const MAX_ANSWER_CHARACTERS = 10_000;

const EXPECTED_ANSWER = 'an object with action "accept" and content, or action "decline" or "cancel", is required';

/** The answer, or why it does not fit its question, without a full stop. */
export async function checkAnswer(
  { requestedSchema }: QuestionEntry,
  response: unknown,
): Promise<{ answer: AnswerEntry } | { reason: string }> {
  const answer = AnswerEntry.safeParse(response);
  if (!answer.success) return { reason: EXPECTED_ANSWER };
  const length = JSON.stringify(answer.data).length;
  if (length > MAX_ANSWER_CHARACTERS)
    return { reason: `it has ${length} characters as JSON; up to ${MAX_ANSWER_CHARACTERS} are accepted` };
  if (answer.data.action === "accept") {
    const { error } = (await formOf(requestedSchema)).safeParse(answer.data.content);
    const reason = error?.issues.map(({ path, message }) => [...path, message].join(": ")).join("; ");
    if (reason !== undefined) return { reason: reason.replace(/\.$/, "") };
  }
  return { answer: answer.data };
}

/** The form of an answer. A property whose schema cannot be used, such as one with an invalid pattern, takes any value. */
export async function formOf({ properties, required, additionalProperties }: QuestionEntry["requestedSchema"]) {
  const { fromJSONSchema } = await import("../../core/tools/json-schema.ts");
  const usable = Object.entries(properties).map(([key, property]) => {
    // Defaults are not filled in: the job gets the answer as it was given.
    const { default: _, ...schema } = Object(property);
    try {
      fromJSONSchema(schema);
      return [key, schema];
    } catch {
      return [key, {}];
    }
  });
  return fromJSONSchema({
    type: "object",
    properties: Object.fromEntries(usable),
    required: Array.isArray(required) ? required : [],
    additionalProperties: additionalProperties !== false,
  });
}

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
    const checked = await checkAnswer(question, responses[key]);
    if ("reason" in checked) return { key, reason: checked.reason };
    answers.push({ promiseId, answer: checked.answer });
  }
  await Promise.all(answers.map(({ promiseId, answer }) => store.feeds.answer(promiseId, answer)));
  return undefined;
}
