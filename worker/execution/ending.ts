/** How an execution ends: what is stored, cached and logged. */

import { toStored } from "../../core/author/values.ts";
import type { HeldTask, TaskLease } from "../../core/engine/lease/lease.ts";
import type { JobEnd } from "../../core/engine/runtime.ts";
import { wakeupOf } from "../../core/jobs/unhandled.ts";
import type { Reporter } from "../../features/progress/reporter.ts";
import type { FoundFunction } from "./code.ts";
import { type Instruments, type LineLog, type Reports, thrown } from "./instruments.ts";
import type { CachedJob, JournalCache } from "./journal-cache.ts";

/**
 * How an execution ended. `asleep`: suspended until an awaited promise settles; `blocked`: suspended until fitting code is back;
 * `left`: left to another worker.
 */
export type Ending = "complete" | "failed" | "asleep" | "blocked" | "left";

export interface JobExecution {
  acquired: HeldTask;
  found: FoundFunction;
  lease: TaskLease;
  cached: CachedJob;
  reporter: Reporter;
  /** The job's id without the namespace: its name for its function and in logs. */
  job: string;
  log: LineLog;
}

interface Shared {
  journals: JournalCache;
  instruments: Instruments;
  reports?: Reports | undefined;
}

/** Stores the outcome of an execution. @throws {LeaseLost} */
export async function conclude(
  outcome: JobEnd,
  { acquired, found, lease, cached, reporter, job, log }: JobExecution,
  { journals, instruments, reports }: Shared,
): Promise<Ending> {
  const { task, promise } = acquired;
  const { kind } = found.implementation.job;
  switch (outcome.kind) {
    case "complete":
    case "failed": {
      reporter.close();
      const error = outcome.kind === "failed" ? storedError(outcome.error) : undefined;
      const stored = cached.journal.stored + cached.journal.files;
      if (outcome.kind === "complete") await lease.fulfill("resolved", outcome.value, stored);
      else await lease.fulfill("rejected", error, stored);
      const reason = error && { reason: error.message };
      // The stack is for the author of the function; callers get the reason only.
      const stack = outcome.kind === "failed" && outcome.error instanceof Error ? thrown(outcome.error) : undefined;
      const duration_ms = Date.now() - promise.createdAt;
      log.info({ outcome: outcome.kind, duration_ms, ...reason, ...(stack && { error: stack }) }, "job done");
      instruments.settled(kind, outcome.kind);
      reports?.ended(promise);
      reports?.figures.ended({ job, kind, outcome: outcome.kind, ms: duration_ms, ...reason, ...stack });
      return outcome.kind;
    }
    case "asleep":
      cached.journal.version = task.version;
      journals.put(promise, { ...cached, newestEntry: reporter.newest });
      reports?.figures.waits({ job, kind, ...reporter.waits });
      return "asleep";
    case "blocked": {
      log.warn({ reason: outcome.reason }, "job blocked");
      reports?.figures.waits({ job, kind, state: "blocked", says: outcome.reason });
      await reporter.blocked(outcome.reason);
      // The job is tried again from time to time: a worker with fitting code may be back.
      const { id, due } = wakeupOf(promise.id, Date.now());
      await lease.create(id, undefined, { due });
      if (!(await lease.suspend([id]))) log.debug("blocked job tried again at once");
      return "blocked";
    }
  }
}

/** The error that a failed job stores: a short message without a stack, as everyone who may read the job sees it. */
export function storedError(thrown: unknown): Error {
  const { name, message: words, at = "" } = toStored(thrown);
  const message = words + at;
  const attempts = (thrown as { attempts?: unknown } | undefined)?.attempts;
  const gaveUp = `gave up after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: `;
  const error = new Error(typeof attempts === "number" ? gaveUp + message : message);
  if (name === "ProtocolFailure" || name === "DeadlineExceeded") error.name = name;
  Object.defineProperty(error, "stack", { value: undefined });
  return error;
}
