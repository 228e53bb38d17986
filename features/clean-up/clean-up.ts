/** The clean-up of one cancelled job: its function continues from the call that throws the cancellation. */
import { NondeterminismError } from "../../core/author/index.ts";
import {
  durationInWords,
  type ExecutionEnd,
  type Journal,
  type JournalRecord,
  machineClock,
  RecordRefused,
} from "../../core/engine/index.ts";
import type { Ending, JobRun } from "../../core/jobs/index.ts";

/** Executes the function of a cancelled job, and stores how its clean-up ended. `execute` executes it once. @throws {LeaseLost} */
export async function cleanUpAfter(run: JobRun, execute: (run: JobRun) => Promise<ExecutionEnd>): Promise<Ending> {
  const { promise, call, memory, lease, runtime, stop, log, name } = run;
  const { journal } = memory;
  const timeMs = run.code.implementation.job.cleanupTime;
  const earlierNotice = noticeIn(journal);
  const cancelledAt = promise.settledAt ?? Date.now();
  // A job that cannot end before its deadline may have been told of it long before it was cancelled.
  const end = Math.max(earlierNotice?.promise.createdAt ?? Date.now(), promise.settledAt ?? 0) + timeMs;
  const overdue = new Error(`it did not end within ${durationInWords(timeMs)}`);
  const cancelTimer = machineClock.after(end - Date.now(), () => stop.abort(overdue));
  runtime.cancelled = { at: cancelledAt, deadline: promise.timeoutAt - (call.cleanup ?? 0) };
  runtime.deadline = end;
  try {
    if (!earlierNotice) log.info({ cleans_up: name }, "clean-up started");
    const outcome = await execute(run);
    if (outcome.kind === "asleep") return "asleep";
    const records = recordsAfterNotice(journal);
    const failure = failureOf(outcome, records);
    if (failure !== undefined) return await fail(run, failure);
    log.info({ cleans_up: name, records: records.length }, "clean-up done");
    await lease.fulfill("resolved", { steps: records.length }, journal.storedBytes + journal.outsideBytes);
    return "complete";
  } catch (error) {
    if (error instanceof RecordRefused) return await fail(run, error.message);
    if (stop.signal.reason === overdue) return await fail(run, overdue.message);
    throw error;
  } finally {
    cancelTimer();
  }
}

/** The record by which a function heard of its job's cancellation or deadline. */
const noticeIn = ({ events }: Journal): JournalRecord | undefined =>
  events.find(({ event }) => event.kind === "cancelled");

function recordsAfterNotice(journal: Journal): JournalRecord[] {
  const { n = 0 } = noticeIn(journal) ?? {};
  return journal.events.filter((record) => record.n > n);
}

/** Why a clean-up has failed; undefined if it has not. An error that its function throws is no failure. */
function failureOf(outcome: ExecutionEnd, records: readonly JournalRecord[]): string | undefined {
  if (outcome.kind === "blocked") return outcome.reason;
  if (outcome.kind === "failed" && outcome.error instanceof NondeterminismError) return outcome.error.message;
  for (const { event } of records)
    if ((event.kind === "step" || event.kind === "start") && event.error) return event.error.message;
  return undefined;
}

async function fail({ lease, memory, log }: JobRun, reason: string): Promise<"failed"> {
  log.error({ reason }, "clean-up failed");
  const error = new Error(reason);
  Object.defineProperty(error, "stack", { value: undefined });
  await lease.fulfill("rejected", error, memory.journal.storedBytes + memory.journal.outsideBytes);
  return "failed";
}
