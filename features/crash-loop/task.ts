/**
 * Suspends a job for a while if its last workers were lost one after the other at the same point, as the job may crash its workers
 * and the other jobs in them.
 */
import type { TaskLease } from "../../core/engine/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import type { JobRun, Observe, ProgressFeeds, TaskEvent } from "../../core/jobs/index.ts";
import { decodeValue, executionMarkId, type PromiseRecord } from "../../core/resonate/index.ts";
import { ALIVE, lostMessage, type Mark, markedBefore, needsMark, needsSignOfLife, restAfter } from "./crash-loop.ts";

interface CrashLoopOptions {
  feeds: Pick<ProgressFeeds, "newest">;
  observe: Observe;
}

export const crashLoop = ({ feeds, observe }: CrashLoopOptions): WorkerFeature => ({
  name: "crash-loop",
  async run(run, next) {
    const { lease, memory, log } = run;
    const { id, version } = lease;
    const isContinued = memory.journal.version === version - 1;
    if (isContinued || !needsMark(memory.journal, version)) return next();
    const { executions, rests } = await newestMark(run);
    const restMs = rests ? 0 : restAfter(executions);
    if (restMs === 0 || (await isMismatched(run, feeds))) {
      await lease.create(executionMarkId(id, version), { executions: executions + 1 } satisfies Mark, "resolved");
      return next();
    }
    const due = Math.ceil(Date.now() + restMs);
    const mark = await lease.create(executionMarkId(id, version), { executions, rests: true } satisfies Mark, { due });
    const reason = lostMessage(due);
    log.error({ reason }, "job blocked");
    await observe({ type: "blocked", task: run, reason, by: "lost_workers" });
    return (await lease.suspend([mark.id])) ? "blocked" : next();
  },
  observes: ["sleeps"],
  async observe(event) {
    if (event.type === "sleeps") await leaveSignOfLife(event.run, event.record);
  },
});

/** Leaves a sign in the journal of a job that is about to be suspended, if it has not had a record for long. */
export async function leaveSignOfLife(
  { memory, lease }: { memory: JobRun["memory"]; lease: Pick<TaskLease, "version"> },
  record: Extract<TaskEvent, { type: "sleeps" }>["record"],
): Promise<void> {
  if (record && needsSignOfLife(memory.journal, lease.version)) await record(ALIVE);
}

/** The newest mark of the executions that may have been lost. */
async function newestMark({ lease, memory }: JobRun): Promise<Mark> {
  for (const version of markedBefore(memory.journal, lease.version)) {
    const mark = await lease.get(executionMarkId(lease.id, version));
    if (mark) return decodeValue(mark.param) as Mark;
  }
  return { executions: 0 };
}

/** Whether the job has recorded nothing because its code does not fit its journal, and not because workers were lost. */
async function isMismatched({ promise }: { promise: PromiseRecord }, feeds: CrashLoopOptions["feeds"]) {
  const { blocked, blocked_by } = (await feeds.newest(promise)).entry ?? {};
  return blocked !== undefined && blocked_by === undefined;
}
