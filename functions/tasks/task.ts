/** A task is a promise: what the Tasks extension says of one is read off the promise, each time. */

import { HOUR } from "../jobs/job.ts";
import { ProtocolFailure, type Question } from "../jobs/journal.ts";
import { presentJob } from "../present.ts";
import type { CallToolResult } from "../protocol.ts";
import type { DurablePromise, NewestEntry, RemoteStore } from "../resonate/store.ts";

/** The extension's identifier, in capabilities. */
export const TASKS = "io.modelcontextprotocol/tasks";

interface TaskBase {
  taskId: string;
  statusMessage?: string;
  createdAt: string;
  lastUpdatedAt: string;
  /** Null: the Resonate server keeps a promise until an operator removes it. */
  ttlMs: null;
  pollIntervalMs?: number;
}

export type DetailedTask = TaskBase &
  (
    | { status: "working" | "cancelled" }
    | { status: "input_required"; inputRequests: Record<string, { method: "elicitation/create"; params: object }> }
    | { status: "completed"; result: { resultType: "complete" } & CallToolResult }
    | { status: "failed"; error: { code: number; message: string } }
  );

/** A question that waits for its caller, by its key. */
export type OpenQuestions = Map<string, { promiseId: string; question: Question }>;

/** What a promise and its journal say, at one moment. */
export interface TaskSnapshot {
  promise: DurablePromise;
  journal: NewestEntry;
  questions: OpenQuestions;
  /** When the last of it came about, in milliseconds since the epoch. */
  updatedAt: number;
}

/** Reads what there is to say of a job besides its promise: its newest journal entry, and which questions are open. */
export async function snapshotOf(
  store: RemoteStore,
  promise: DurablePromise,
  signal?: AbortSignal,
): Promise<TaskSnapshot> {
  if (promise.state !== "pending" || !promise.job.keepsJournal) return withoutJournal(promise);
  const journal = await store.journals.newestEntry(promise.name, signal);
  const asked = Object.entries(journal.entry?.questions ?? {});
  const answeredAt = await Promise.all(asked.map(([, { promiseId }]) => store.journals.answeredAt(promiseId, signal)));
  return {
    promise,
    journal,
    questions: new Map(asked.filter((_question, index) => answeredAt[index] === undefined)),
    updatedAt: Math.max(promise.createdAt, journal.writtenAt, ...answeredAt.map((at) => at ?? 0)),
  };
}

/** What there is to say of a job that has only just started, has ended, or never reports. */
export function withoutJournal(promise: DurablePromise): TaskSnapshot {
  const updatedAt = promise.settledAt ?? promise.createdAt;
  return { promise, journal: { n: 0, entry: undefined, writtenAt: 0 }, questions: new Map(), updatedAt };
}

/** The task as `tasks/get` and `notifications/tasks` give it. */
export function detailedTask(taskId: string, snapshot: TaskSnapshot, now: number): DetailedTask {
  const { promise, journal, questions, updatedAt } = snapshot;
  const base: TaskBase = {
    taskId,
    createdAt: new Date(promise.createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttlMs: null,
  };
  switch (promise.state) {
    case "pending": {
      const pollIntervalMs = pollInterval(promise, now);
      const message = journal.entry?.message;
      if (questions.size === 0) {
        return { ...base, status: "working", pollIntervalMs, ...(message && { statusMessage: message }) };
      }
      const asked = [...questions].map(([key, { question }]) => [
        key,
        { method: "elicitation/create", params: { mode: "form", ...question } },
      ]);
      const statusMessage = [...questions.values()].map(({ question }) => question.message).join("\n");
      const inputRequests = Object.fromEntries(asked);
      return { ...base, status: "input_required", pollIntervalMs, statusMessage, inputRequests };
    }
    case "rejected_canceled":
      return { ...base, status: "cancelled", statusMessage: "Cancelled." };
    case "rejected":
      if (promise.value instanceof Error && promise.value.name === ProtocolFailure.name) {
        const error = { code: -32603, message: promise.value.message };
        return { ...base, status: "failed", statusMessage: error.message, error };
      }
      return completed(base, promise);
    default:
      return completed(base, promise);
  }
}

function completed(base: TaskBase, promise: DurablePromise): DetailedTask {
  // As the call itself would have been answered, and so with what kind of result it is.
  return { ...base, status: "completed", result: { resultType: "complete", ...presentJob(promise) } };
}

/**
 * When it is worth asking again, in milliseconds: after half of what remains, for a job that knows when it will be
 * done, and otherwise after half as long again as it has been running.
 */
function pollInterval(promise: DurablePromise, now: number): number {
  const expected = promise.job.expectedAt?.(promise.args);
  if (expected !== undefined) return clamp((expected - now) / 2, 500, HOUR);
  return clamp((now - promise.createdAt) / 2, 500, 30_000);
}

function clamp(value: number, min: number, max: number): number {
  return Math.round(Math.min(Math.max(value, min), max));
}
