/** What a job's promise and its journal say, at one moment: how it is, what it does, and what it asks. */

import { doing, type QuestionEntry } from "./feed/progress-feed.ts";
import type { DurablePromise, NewestEntry, RemoteStore } from "./remote-store.ts";
import { type JobView, mayTell } from "./status.ts";

/** The questions that wait for an answer, by their keys. */
export type OpenQuestions = Map<string, { promiseId: string; question: QuestionEntry }>;

export interface JobSnapshot {
  promise: DurablePromise;
  feed: NewestEntry;
  questions: OpenQuestions;
  /** When the last of it came about, in milliseconds since the epoch. */
  updatedAt: number;
}

/**
 * Reads what there is to say of a job besides its promise: its newest journal entry, which may be as it was a second ago
 * where that is asked for, and which questions are open.
 */
export async function jobSnapshotOf(
  store: RemoteStore,
  promise: DurablePromise,
  signal?: AbortSignal,
  how: "newest" | "recent" = "newest",
): Promise<JobSnapshot> {
  if (!mayTell(promise, Date.now())) return withoutFeed(promise);
  const journal = await store.feeds[how](promise.id, signal);
  const asked = Object.entries(journal.entry?.questions ?? {});
  const answeredAt = await Promise.all(asked.map(([, { promiseId }]) => store.feeds.answeredAt(promiseId, signal)));
  return {
    promise,
    feed: journal,
    questions: new Map(asked.filter((_question, index) => answeredAt[index] === undefined)),
    updatedAt: Math.max(promise.createdAt, journal.writtenAt, ...answeredAt.map((at) => at ?? 0)),
  };
}

/** What there is to say of a job that has only just started, has ended, or never reports. */
export function withoutFeed(promise: DurablePromise): JobSnapshot {
  const updatedAt = promise.settledAt ?? promise.createdAt;
  return { promise, feed: { n: 0, entry: undefined, writtenAt: 0 }, questions: new Map(), updatedAt };
}

/** What a running job does, in one line for people; undefined when there is nothing to say. */
export function doingOf({ feed: { entry }, questions }: JobSnapshot, now: number): string | undefined {
  return doing(entry && { ...entry, questions: Object.fromEntries(questions) }, now);
}

/** What a running job does, and what it waits to be told, as tools say it. */
export function tellingOf(snapshot: JobSnapshot, now: number): Pick<JobView, "doing" | "waiting_for"> {
  const { promise, questions } = snapshot;
  const text = doingOf(snapshot, now);
  const until = new Date(promise.timeoutAt).toISOString();
  const waiting_for = [...questions].map(([key, { question }]) => {
    const { message, requestedSchema, answeredBy = "user" } = question;
    const form = answeredBy === "anyone" && { answer_schema: requestedSchema };
    return { question: key, message, answered_by: answeredBy, ...form, until };
  });
  return { ...(text !== undefined && { doing: text }), ...(waiting_for.length > 0 && { waiting_for }) };
}

/** How a job goes on that waits for answers, in a sentence; undefined for one that waits for none. */
export function howToAnswer(jobName: string, { questions, promise }: JobSnapshot): string | undefined {
  if (questions.size === 0) return undefined;
  const asked = [...questions].map(([key, { question }]) => `${key}: ${question.message}`).join("; ");
  const isOpenToAll = [...questions.values()].every(({ question }) => question.answeredBy === "anyone");
  const who = isOpenToAll
    ? `Answer with answer_question (job_name ${jobName}).`
    : "Only the user can answer, in a client that shows questions or on the job's page, if any.";
  return `${jobName} waits for an answer (${asked}). ${who} It waits until ${new Date(promise.timeoutAt).toISOString()}.`;
}
