/**
 * Has a worker clean up after a cancelled job, and a new attempt wait for that. The promise of a job outlives its deadline, so that
 * the function can clean up after `DeadlineExceeded` too.
 */
import type { Job } from "../../core/author/index.ts";
import type { JobAccess, JobFeature } from "../../core/jobs/index.ts";
import {
  CLEANUP_FUNCTION,
  cleanUpId,
  decodeValue,
  encodeValue,
  lineage,
  WAITS_FOR_CLEANUP_TAG,
} from "../../core/resonate/index.ts";

declare module "../../core/jobs/job-call.ts" {
  interface JobCall {
    /** How long the promise outlives the deadline, in milliseconds. */
    cleanup?: number;
  }
}

/** How long a cancelled job's clean-up may wait for a worker, in milliseconds. */
const CLEAN_UP_TIMEOUT_MS = 24 * 3_600_000;

export const cleanUp: JobFeature = {
  start(start, next) {
    const { job, previous, call, tags } = start;
    if (!cleansUp(job)) return next();
    if (job.cleanupTime > 0) {
      call.cleanup = job.cleanupTime;
      start.timeoutAt += job.cleanupTime;
    }
    if (previous?.attempt.state === "rejected_canceled") tags[WAITS_FOR_CLEANUP_TAG] = cleanUpId(previous.attempt.id);
    return next();
  },
  async cancel({ promise, jobs }, next) {
    // Comes first: if this process crashes before the job is cancelled, the clean-up cancels it.
    if (promise.state === "pending" && cleansUp(promise.job)) await createCleanUp(promise.id, jobs);
    return next();
  },
  async look({ promise, signal, jobs }, next) {
    if (promise.state !== "rejected_canceled" || !cleansUp(promise.job)) return next();
    const [current, record] = await Promise.all([next(), jobs.child(cleanUpId(promise.id), signal)]);
    return record ? { ...current, cleanup: { state: record.state, value: decodeValue(record.value) } } : current;
  },
  // A clean-up still reads the journal.
  forget: async ({ promise }, next) => (promise.cleanup?.state === "pending" ? "running" : next()),
};

/** Creates the task that cleans up after a job which is about to be cancelled. */
async function createCleanUp(job: string, { client, endpoint }: JobAccess): Promise<void> {
  const id = cleanUpId(job);
  // Any worker of the group takes it. A search for jobs by the group's address must not find it: hence the suffix.
  const tags = { ...lineage(id), "resonate:target": `poll://any@${endpoint.group}/after` };
  const param = encodeValue({ func: CLEANUP_FUNCTION, args: [], version: 1 });
  const data = { id, timeoutAt: Date.now() + CLEAN_UP_TIMEOUT_MS, param, tags };
  await client.call({ kind: "promise.create", data });
}

/** Whether a worker cleans up after a cancelled job. Timers, waits of the edge and jobs of foreign groups end at once. */
const cleansUp = ({ expectedAt, group, runs }: Job): boolean => !expectedAt && group === undefined && runs !== "edge";
