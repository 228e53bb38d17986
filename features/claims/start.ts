/** Keeps a shared job running while somebody wants it: see `claims.ts`. */

import { REQUEST_TAG } from "../../core/author/index.ts";
import {
  type CancellationOutcome,
  Claims,
  type DurablePromise,
  type JobAccess,
  type JobFeature,
  KIND_TAG,
  type Requester,
} from "../../core/jobs/index.ts";
import { CALLER_TAG, childOf, getOf, STARTER_TAG, startRecordId } from "../../core/resonate/index.ts";

/** The claimant of a job in a deployment without authentication. */
const ANYONE_LABEL = "anyone";

/** Who claims a shared job: the caller, or the durable function that acts for it. Empty if nobody does. */
const claimantOf = ({ key, parent }: Requester): string => parent ?? key;

/** Whether the caller acts directly, and not through a durable function. */
const isCaller = ({ key, parent }: Requester): boolean => key !== "" && parent === undefined;

export const claims: JobFeature = {
  async start(start, next) {
    const { job, by, jobs, tags } = start;
    if (!job.shared) return next();
    const claimant = claimantOf(by);
    if (claimant === "") {
      const promise = await next();
      // Without a claim, a durable function that started the job could cancel it while this caller wants it.
      return promise.record.tags[STARTER_TAG] === undefined ? promise : claim(promise, ANYONE_LABEL, jobs);
    }
    tags[STARTER_TAG] = claimant;
    // A search for the caller's jobs does not find those of its durable functions.
    if (by.key !== "" && !isCaller(by)) for (const tag of [CALLER_TAG, KIND_TAG]) delete tags[tag];
    const promise = await next();
    return promise.record.tags[STARTER_TAG] === claimant ? wantAgain(promise, by, jobs) : want(promise, by, jobs);
  },
  async cancel({ promise, by, isForced, jobs }, next) {
    if (isForced || !promise.job.shared || claimantOf(by) === "") return next();
    const starter = promise.record.tags[STARTER_TAG];
    if (isCaller(by) && starter !== by.key && !(await startRecordOf(promise, by, jobs))) return undefined;
    const mayEnd = promise.state === "pending" && (await claimsOf(promise, jobs).giveUp(claimantOf(by), starter));
    return mayEnd ? next() : { promise, isOurs: false };
  },
};

/** Claims a job that somebody else has started. */
async function want(promise: DurablePromise, by: Requester, jobs: JobAccess): Promise<DurablePromise> {
  if (isCaller(by)) await recordStart(promise, by, jobs);
  return claim(promise, claimantOf(by), jobs);
}

/** The creator of a job needs no claim, unless it gave the job up before. */
async function wantAgain(promise: DurablePromise, by: Requester, jobs: JobAccess): Promise<DurablePromise> {
  const isNew = by.requestId !== "" && promise.record.tags[REQUEST_TAG] === by.requestId;
  if (isNew || !isCaller(by) || promise.state !== "pending") return promise;
  const record = await startRecordOf(promise, by, jobs);
  return record?.state === "resolved" ? claim(promise, by.key, jobs) : promise;
}

/** Claims a shared job, so that nobody else cancels it. Returns its current promise. */
async function claim(promise: DurablePromise, claimant: string, jobs: JobAccess): Promise<DurablePromise> {
  if (promise.state !== "pending" || (await claimsOf(promise, jobs).claim(claimant))) return promise;
  const outcome: CancellationOutcome | undefined = await jobs.end(promise);
  return outcome?.promise ?? promise;
}

const claimsOf = ({ id, timeoutAt }: DurablePromise, { client }: JobAccess) => new Claims(client, id, timeoutAt);

const startRecordOf = ({ id }: DurablePromise, { key }: Requester, { client }: JobAccess) =>
  client.call(getOf(startRecordId(id, key)));

/** Records that this caller started the job as well. */
async function recordStart({ id, job, timeoutAt }: DurablePromise, by: Requester, jobs: JobAccess): Promise<void> {
  const { key, requestId } = by;
  const request = requestId !== "" && { [REQUEST_TAG]: requestId };
  const tags = { ...jobs.names.ownerTags(job.kind), ...request };
  await jobs.client.call(childOf(startRecordId(id, key), timeoutAt, { tags }));
}
