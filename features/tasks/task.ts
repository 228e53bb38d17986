/** A task is the promise of a job. Its description for the Tasks extension is derived from the promise each time. */

import { HOUR } from "../../core/author/index.ts";
import {
  type CurrentJob,
  type DurablePromise,
  howToAnswer,
  inputRequestsOf,
  lineOf,
  viewOf,
} from "../../core/jobs/index.ts";
import { RETENTION_TAG } from "../../core/resonate/index.ts";
import {
  ANSWER_SUBJECT,
  answersOf,
  type CallToolResult,
  ErrorCode,
  presentJob,
  type RpcFailure,
} from "../../core/tools/index.ts";

/** The name of {@link ProtocolFailure} errors: the class's own name is minified in a deployment. */
const PROTOCOL_FAILURE = "ProtocolFailure";

/** The most tasks that one subscription may name, and the most resources, for each of which a job waits. */
export const MAX_TASKS = 100;
export const MAX_RESOURCES = 20;

/** What is said of a cancelled task, by the state of its clean-up. */
const CANCELLED = {
  none: "Cancelled.",
  running: "Cancelled. It is cleaning up.",
  done: "Cancelled. It has cleaned up.",
  failed: "Cancelled. Its clean-up has failed.",
} as const;

interface TaskBase {
  taskId: string;
  statusMessage?: string;
  createdAt: string;
  lastUpdatedAt: string;
  /** When the task may be removed, in milliseconds from its creation; see {@link ttlOf}. */
  ttlMs: number | null;
  pollIntervalMs?: number;
}

export type DetailedTask = TaskBase &
  (
    | { status: "working" | "cancelled" }
    | { status: "input_required"; inputRequests: Record<string, { method: "elicitation/create"; params: object }> }
    | { status: "completed"; result: { resultType: "complete" } & CallToolResult }
    | { status: "failed"; error: RpcFailure }
  );

/** What the description of a task depends on, besides its job. */
export interface Audience {
  /** Milliseconds since the epoch. */
  now: number;
  /** Whether a question may be put to the client. */
  showsForms: boolean;
  /** How long jobs are kept after their end by default, in milliseconds; undefined: forever, or not known. */
  retentionMs: number | undefined;
  /** The address of the job's page, for its caller; undefined in a deployment without links. */
  page: string | undefined;
}

const withPage = (message: string, page: string | undefined) =>
  page === undefined ? message : `${message}\nIts page: ${page}`;

/**
 * The task as `tasks/get` and `notifications/tasks` give it. A question is put to clients that can show it to their users. For
 * other clients the task is working, and its status message says what it waits for.
 */
export function detailedTask(
  taskId: string,
  current: CurrentJob,
  { now, showsForms, retentionMs, page }: Audience,
): DetailedTask {
  const { promise, questions, updatedAt } = current;
  const base: TaskBase = {
    taskId,
    createdAt: new Date(promise.createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttlMs: ttlOf(promise, retentionMs),
  };
  switch (promise.state) {
    case "pending": {
      const pollIntervalMs = pollInterval(current, now);
      if (questions.size === 0 || !showsForms) {
        const statusMessage = howToAnswer(promise.name, current) ?? lineOf(current, now);
        return { ...base, status: "working", pollIntervalMs, statusMessage: withPage(statusMessage, page) };
      }
      const statusMessage = [...questions.values()].map(({ question }) => question.message).join("\n");
      const inputRequests = inputRequestsOf(current);
      return { ...base, status: "input_required", pollIntervalMs, statusMessage, inputRequests };
    }
    case "rejected_canceled":
      return {
        ...base,
        status: "cancelled",
        statusMessage: CANCELLED[viewOf(promise.name, promise).cleanup ?? "none"],
      };
    case "rejected":
      if (promise.value instanceof Error && promise.value.name === PROTOCOL_FAILURE) {
        return failed(base, { code: ErrorCode.InternalError, message: promise.value.message });
      }
      return completed(base, promise);
    default:
      return completed(base, promise);
  }
}

/**
 * How long a task lives from its creation, in milliseconds: until its end, or its deadline while it runs, and then for its
 * retention. Null: forever, or until somebody removes it.
 */
function ttlOf(
  { record, createdAt, settledAt, timeoutAt }: DurablePromise,
  defaultRetentionMs: number | undefined,
): number | null {
  const retention = record.tags[RETENTION_TAG];
  const retentionMs =
    retention === undefined ? defaultRetentionMs : retention === "forever" ? undefined : Number(retention);
  return retentionMs === undefined ? null : Math.round((settledAt ?? timeoutAt) - createdAt + retentionMs);
}

const failed = (base: TaskBase, { code, message, data }: RpcFailure): DetailedTask => {
  const error = { code, message, ...(data !== undefined && { data }) };
  return { ...base, status: "failed", statusMessage: message, error };
};

function completed(base: TaskBase, promise: DurablePromise): DetailedTask {
  const failure = answersOf(promise.job)?.protocolErrorIn(promise.value);
  if (failure) return failed(base, failure);
  // The same result as that of a call that waits for the job.
  const answer = presentJob(promise);
  const result = {
    ...answer,
    content: [...answer.content, ...(answer[ANSWER_SUBJECT]?.media ?? []), ...(answer[ANSWER_SUBJECT]?.links ?? [])],
  };
  return { ...base, status: "completed", result: { resultType: "complete", ...result } };
}

/**
 * When to ask again, in milliseconds: after half of the remaining time for a job that knows its end, otherwise after half of
 * the time since the last change.
 */
function pollInterval({ promise, updatedAt }: CurrentJob, now: number): number {
  const expected = promise.job.expectedAt?.(promise.args);
  if (expected !== undefined) return clamp((expected - now) / 2, 500, HOUR);
  return clamp((now - updatedAt) / 2, 500, 30_000);
}

function clamp(value: number, min: number, max: number): number {
  return Math.round(Math.min(Math.max(value, min), max));
}
