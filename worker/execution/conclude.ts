/** Stores how the function of a job has ended. */
import { toStored } from "../../core/author/values.ts";
import type { JobEnd } from "../../core/engine/runtime.ts";
import { stackOf } from "../../core/jobs/line-log.ts";
import type { Ending, JobRun, Observe } from "../../core/jobs/task-feature.ts";
import { wakeupOf } from "../../core/jobs/unhandled.ts";
import type { JournalCache } from "./journal-cache.ts";

/** @throws {LeaseLost} */
export async function conclude(
  run: JobRun,
  end: JobEnd,
  { journals, observe }: { journals: JournalCache; observe: Observe },
): Promise<Ending> {
  run.end = end;
  switch (end.kind) {
    case "complete":
    case "failed":
      return settle(run, end, observe);
    case "asleep":
      run.memory.journal.version = run.lease.version;
      journals.put(run.promise, run.memory);
      await observe({ type: "asleep", run });
      return "asleep";
    case "blocked":
      return block(run, end.reason, observe);
  }
}

/** Settles the promise of a job. */
async function settle(
  run: JobRun,
  end: Extract<JobEnd, { kind: "complete" | "failed" }>,
  observe: Observe,
): Promise<"complete" | "failed"> {
  const { promise, lease, memory, log } = run;
  const outcome = end.kind;
  await observe({ type: "ends", task: run });
  const error = end.kind === "failed" ? storedError(end.error) : undefined;
  const storedBytes = memory.journal.storedBytes + memory.journal.outsideBytes;
  if (end.kind === "complete") await lease.fulfill("resolved", end.value, storedBytes);
  else await lease.fulfill("rejected", error, storedBytes);
  const durationMs = Date.now() - promise.createdAt;
  const reason = error?.message;
  // The stack is for the author of the function; callers get the reason only.
  const stack = end.kind === "failed" ? stackOf(end.error) : undefined;
  log.info(
    {
      outcome,
      duration_ms: durationMs,
      ...(reason !== undefined && { reason }),
      ...(stack !== undefined && { error: { stack } }),
    },
    "job done",
  );
  await observe({ type: "ended", task: run, outcome, durationMs, reason, stack });
  return outcome;
}

/** Suspends a job whose code does not fit. It is tried again from time to time: a worker with fitting code may be back. */
async function block(run: JobRun, reason: string, observe: Observe): Promise<"blocked"> {
  const { promise, lease, log } = run;
  log.warn({ reason }, "job blocked");
  await observe({ type: "blocked", task: run, reason });
  const { id, due } = wakeupOf(promise.id, Date.now());
  await lease.create(id, undefined, { due });
  if (!(await lease.suspend([id]))) log.debug("blocked job tried again at once");
  return "blocked";
}

/** The error that a failed job stores: a short message without a stack, as everyone who may read the job sees it. */
export function storedError(thrown: unknown): Error {
  const { name, message: words, code, at = "" } = toStored(thrown);
  const message = words + at;
  const attempts = (thrown as { attempts?: unknown } | undefined)?.attempts;
  const gaveUp = `gave up after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: `;
  const error = new Error(typeof attempts === "number" ? gaveUp + message : message);
  if (name === "ProtocolFailure" || name === "DeadlineExceeded") error.name = name;
  if (typeof code === "string") Object.assign(error, { code });
  Object.defineProperty(error, "stack", { value: undefined });
  return error;
}
