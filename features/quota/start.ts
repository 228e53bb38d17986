/** Counts each job in its caller's record, and refuses those beyond the caller's limits. */

import { REQUEST_TAG } from "../../core/author/index.ts";
import {
  type CallerRecord,
  type CallerRecords,
  entryOfJob,
  entryOfStart,
  type JobFeature,
  type JobStart,
  type Reservation,
  reservationFor,
  tagOf,
} from "../../core/jobs/index.ts";
import { RESERVATION_TAG } from "../../core/resonate/index.ts";
import { exceeded } from "./exceeded.ts";

export const quota = ({ limits, of }: CallerRecords): JobFeature => ({
  async start(start, next) {
    const { by, jobs, existing, tags } = start;
    const { record } = jobs;
    if (!record) return next();
    const reserved = existing ? undefined : await reserve(start, record, limits);
    if (reserved) tags[RESERVATION_TAG] = tagOf(reserved);
    // If this fails, the job may exist nevertheless: its reservation stays until the record has looked at the promise.
    const promise = await next();
    const isNew = by.requestId !== "" && promise.record.tags[REQUEST_TAG] === by.requestId;
    const isRecorded = !existing && (isNew || (reserved?.isKnown === true && promise.state === "pending"));
    if (!isRecorded) await record.note([entryOfJob(promise, by.key)]);
    return promise;
  },
  async cancel({ by }, next) {
    const cancelled = await next();
    // The job is cancelled even if this fails: a record that missed it looks at the promise before it refuses a start.
    if (cancelled?.isOurs)
      await of(by.key)
        .note([entryOfJob(cancelled.promise, by.key)], true)
        .catch(() => {});
    return cancelled;
  },
  async forget({ id, by }, next) {
    const removed = await next();
    if (removed !== "running") await of(by.key).forget(id, removed === "hidden");
    return removed;
  },
  needsJob: () => limits.jobs > 0 || limits.bytes > 0,
});

/**
 * Reserves the job's share of its caller's quota, and enters the job in the caller's record. `isKnown`: the record knew the job as
 * pending.
 *
 * @throws {NotStarted} for a job that does not exist, when the caller has reached a limit
 */
async function reserve(
  start: JobStart,
  record: CallerRecord,
  limits: CallerRecords["limits"],
): Promise<Reservation & { isKnown: boolean }> {
  const { name, job, args, now, by, jobs } = start;
  const entry = entryOfStart(start);
  const wanted = { duration: entry.due - now, now, count: job.counts(args) };
  const reservation = reservationFor(wanted);
  const isPossible = wanted.count <= limits.jobs || limits.jobs === 0;
  const answer = isPossible ? await record.reserve({ ...entry, ...reservation }, limits) : "full";
  if (answer !== "reserved" && answer !== "known" && !(await jobs.get(name))) throw exceeded(answer, limits, wanted);
  // If this throws, the reservation is released by itself, as its job does not exist.
  if (answer === "reserved" && wanted.count > 1) await by.chargeStarts?.(wanted.count);
  return { ...reservation, isKnown: answer === "known" };
}
