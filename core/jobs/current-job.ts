/** A job at one moment: its promise, the newest entry of its progress feed and its open questions. */

import type { DurablePromise } from "./durable-promise.ts";
import { activityIn, type QuestionEntry } from "./feed/progress-feed.ts";
import { type NewestEntry, NO_ENTRY } from "./feed/progress-feeds.ts";
import type { RemoteStore } from "./remote-store.ts";
import { type JobView, mayShow } from "./status.ts";

type OpenQuestions = Map<string, { promiseId: string; question: QuestionEntry }>;

export interface CurrentJob {
  promise: DurablePromise;
  feed: NewestEntry;
  questions: OpenQuestions;
  /** When any part last changed, in milliseconds since the epoch. */
  updatedAt: number;
}

/**
 * Reads the newest entry of a job's progress feed, and which of its questions are open. With `recent` the entry may be a second
 * old.
 */
export async function currentJobOf(
  store: RemoteStore,
  promise: DurablePromise,
  signal?: AbortSignal,
  how: "newest" | "recent" = "newest",
): Promise<CurrentJob> {
  if (!mayShow(promise, Date.now())) return withoutFeed(promise);
  const feed = await store.feeds[how](promise, signal);
  const openQuestions = Object.entries(feed.entry?.questions ?? {});
  const answeredAt = await Promise.all(
    openQuestions.map(([, { promiseId }]) => store.feeds.answeredAt(promiseId, signal)),
  );
  return {
    promise,
    feed,
    questions: new Map(openQuestions.filter((_question, index) => answeredAt[index] === undefined)),
    updatedAt: Math.max(promise.createdAt, feed.writtenAt, ...answeredAt.map((at) => at ?? 0)),
  };
}

/** A job that has just started, has ended, or never reports. */
export function withoutFeed(promise: DurablePromise): CurrentJob {
  const updatedAt = promise.settledAt ?? promise.createdAt;
  return { promise, feed: NO_ENTRY, questions: new Map(), updatedAt };
}

/** What a running job does, in one line for people; undefined if it reports nothing. */
export function doingOf({ feed: { entry }, questions }: CurrentJob, now: number): string | undefined {
  return activityIn(entry && { ...entry, questions: Object.fromEntries(questions) }, now);
}

interface Count {
  done: number;
  /** Undefined if the job does not know it. */
  total?: number | undefined;
}

/** The progress of a job: in seconds of the time until its expected end, if it has one, otherwise as the job reports it. */
export function countOf({ promise, feed: { entry } }: CurrentJob, now: number): Count {
  const end = promise.job.expectedAt?.(promise.args);
  if (end === undefined || end <= promise.createdAt) return entry?.progress ?? { done: 0 };
  const seconds = (ms: number) => Math.round(ms / 1_000);
  return { done: seconds(Math.min(now, end) - promise.createdAt), total: seconds(end - promise.createdAt) };
}

/** The name of a running job and what it does, even if it reports nothing. */
export function lineOf(current: CurrentJob, now: number): string {
  const { name, job, args } = current.promise;
  const end = job.expectedAt?.(args);
  const expected = end === undefined ? "running" : `running, due at ${new Date(end).toISOString()}`;
  return `${name}: ${doingOf(current, now) ?? expected}`;
}

/** What a running job does and asks, as fields of a tool's result. */
export function activityOf(current: CurrentJob, now: number): Pick<JobView, "doing" | "run" | "waiting_for"> {
  const { promise, questions } = current;
  const text = doingOf(current, now);
  const until = new Date(promise.deadline).toISOString();
  const waiting_for = [...questions].map(([key, { question }]) => {
    const { message, requestedSchema, answeredBy = "user" } = question;
    const form = answeredBy === "anyone" && { answer_schema: requestedSchema };
    return { question: key, message, answered_by: answeredBy, ...form, until };
  });
  const run = current.feed.entry?.run;
  return {
    ...(text !== undefined && { doing: text }),
    ...(run !== undefined && { run }),
    ...(waiting_for.length > 0 && { waiting_for }),
  };
}

/** The open questions of a job as elicitation requests to a client's user, by key. */
export function inputRequestsOf({ questions }: CurrentJob) {
  const openQuestions = [...questions].map(([key, { question }]) => {
    const { answeredBy, keepsIntegers: _, ...form } = question;
    return [key, { method: "elicitation/create" as const, params: { mode: "form" as const, ...form } }] as const;
  });
  return Object.fromEntries(openQuestions);
}

/** How to answer a job's open questions, in words; undefined if it has none. */
export function howToAnswer(jobName: string, { questions, promise }: CurrentJob): string | undefined {
  if (questions.size === 0) return undefined;
  const openQuestions = [...questions].map(([key, { question }]) => `${key}: ${question.message}`).join("; ");
  const isOpenToAll = [...questions.values()].every(({ question }) => question.answeredBy === "anyone");
  const who = isOpenToAll
    ? `Answer with answer_question (job_name ${jobName}).`
    : "Only the user can answer, in a client that shows questions or on the job's page, if any.";
  return `${jobName} waits for an answer (${openQuestions}). ${who} It waits until ${new Date(promise.deadline).toISOString()}.`;
}
