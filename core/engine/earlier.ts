/** What jobs did before there were records of it. */

import type { Question } from "../definitions/context.ts";
import { decodeValue } from "../store/codec.ts";
import type { PromiseRecord } from "../store/protocol.ts";
import type { Journal } from "./journal.ts";

/**
 * The questions that a job asked then, each found once: among the promises `<job>:0`, `<job>:1`, … of all that it did, in
 * that order, it is the one that holds the question.
 */
export function earlierQuestions(
  job: string,
  { events }: Journal,
  get: (id: string) => Promise<PromiseRecord | undefined>,
): (question: Question) => Promise<string | undefined> {
  const found = new Set(events.flatMap(({ event }) => (event.kind === "ask" ? (event.promise ?? []) : [])));
  return async (question) => {
    for (let n = 0; ; n++) {
      const promise = await get(`${job}:${n}`);
      if (!promise) return undefined;
      if (found.has(promise.id) || !asks(decodeValue(promise.param), question)) continue;
      found.add(promise.id);
      return promise.id;
    }
  };
}

function asks(param: unknown, { message, requestedSchema }: Question): boolean {
  if (typeof param !== "object" || param === null) return false;
  const stored = param as Partial<Question>;
  return stored.message === message && JSON.stringify(stored.requestedSchema) === JSON.stringify(requestedSchema);
}
