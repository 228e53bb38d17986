import { type Job, NotStarted } from "../author/job.ts";
import { splitGeneration, withGeneration } from "../resonate/ids.ts";
import { canonical } from "../resonate/json.ts";
import { last } from "../resonate/sequence.ts";
import type { DurablePromise } from "./durable-promise.ts";
import type { RemoteStore } from "./remote-store.ts";
import { endedWithoutResult } from "./status.ts";

/** How many new attempts a call makes at most, if each attempt ends without a result before the call is answered. */
const MAX_STARTS = 4;

/** How many characters of a job's arguments are shown to a start that has other arguments. */
const MAX_ARGUMENT_CHARACTERS = 200;

/**
 * Starts a job, or finds it: one round trip for a job that is new, running or complete. A job that ended without a result,
 * or whose result is no longer fresh, is started again as the next generation of its name: from the start, unless its
 * definition resumes. If its definition does not restart it, the start finds the newest generation, as an operator may have
 * retried it. Concurrent restarts create the same promise, and so are one.
 *
 * `otherArguments`: what becomes of a start if the job has other arguments. Default: as the definition says.
 *
 * @throws {ResonateUnavailable} nothing is half-started: the promise exists and will run, or it does not exist
 * @throws {NotStarted}
 */
export async function startJob<Args>(
  store: RemoteStore,
  job: Job<Args>,
  args: Args,
  now: number,
  otherArguments = job.otherArguments,
): Promise<DurablePromise> {
  const asStarted = (promise: DurablePromise) => withSameArgs(promise, args, otherArguments);
  const base = await job.name(args);
  const first = await store.create(job, base, args, now);
  if (first.state === "pending") return asStarted(first);
  if (!isStale(job, first, now) && !endedWithoutResult(first)) return asStarted(first);
  let { generation, promise } = await newestGeneration(store, base, first);
  if (generation > 1 && !isStale(job, promise, now)) promise = await store.join(promise);
  // After that many starts, a job that has ended once more is returned as it is.
  for (let starts = 0; starts < MAX_STARTS && isStale(job, promise, now); starts++) {
    generation += 1;
    const previous = { attempt: promise, isResumed: mayResume(job, promise, args) };
    promise = await store.create(job, withGeneration(base, generation), args, now, previous);
  }
  return asStarted(promise);
}

/**
 * The job that a start made or found, with a note if it has other arguments, or a refusal. That happens only if the
 * definition's `id` leaves some arguments out.
 *
 * @throws {NotStarted}
 */
function withSameArgs(promise: DurablePromise, args: unknown, otherArguments: Job["otherArguments"]): DurablePromise {
  // A job that was just created has the very arguments of its start.
  if (promise.args === args) return promise;
  checkReadable(promise, args);
  if (otherArguments === "accept" || isSame(promise.args, args)) return promise;
  const text = canonical(promise.args);
  const otherArgs = text.length > MAX_ARGUMENT_CHARACTERS ? `${text.slice(0, MAX_ARGUMENT_CHARACTERS)}…` : text;
  const note = `${promise.name} was started with other arguments: ${otherArgs}.`;
  if (otherArguments === "refuse") throw new NotStarted(`${note} It is not started for these`);
  return { ...promise, note: `${note} What follows is of those.` };
}

/**
 * Refuses a job whose arguments cannot be decoded, to a tool that would answer by them.
 *
 * @throws {NotStarted}
 */
export function checkReadable(promise: DurablePromise, args: unknown): void {
  if (promise.args !== undefined || args === undefined) return;
  throw new NotStarted(
    `the name ${promise.name} is taken by a job whose arguments cannot be read. cancel_job and forget_jobs remove it`,
  );
}

/** Whether a new attempt resumes after the last good step of the earlier one. */
function mayResume<Args>(job: Job<Args>, earlier: DurablePromise, args: Args): boolean {
  if (job.onRestart !== "resume" || !endedWithoutResult(earlier)) return false;
  return earlier.version === job.version && isSame(earlier.args, args);
}

const isSame = (one: unknown, other: unknown): boolean => canonical(one) === canonical(other);

/** Whether a new start makes the next generation. */
function isStale<Args>(job: Job<Args>, promise: DurablePromise, now: number): boolean {
  const args = promise.args as Args;
  if (promise.state !== "resolved") return endedWithoutResult(promise) && job.restarts(errorOf(promise), args);
  const fresh = freshnessOf(promise);
  return fresh !== undefined && now >= (promise.settledAt ?? promise.createdAt) + fresh;
}

/** For how many milliseconds a result is fresh; undefined: forever, as when its job's arguments cannot be decoded. */
const freshnessOf = ({ job, value, args }: DurablePromise): number | undefined =>
  args === undefined ? undefined : job.freshFor(value, args);

/** Why a job failed; undefined if it did not. */
function errorOf({ state, value }: DurablePromise): Error | undefined {
  return state === "rejected" && value instanceof Error ? value : undefined;
}

/** Finds the newest generation of `base`, given one of its generations, in a logarithmic number of reads. */
export async function newestGeneration(
  store: RemoteStore,
  base: string,
  promise: DurablePromise,
  { generation = 1, signal }: { generation?: number; signal?: AbortSignal | undefined } = {},
): Promise<{ generation: number; promise: DurablePromise }> {
  // A job with a result has a next generation only if its kind limits how long results stay fresh.
  const mayGrowOld = promise.state === "resolved" && freshnessOf(promise) !== undefined;
  const isLast = (promise: DurablePromise) => !endedWithoutResult(promise) && !mayGrowOld;
  const get = (n: number) => store.get(withGeneration(base, n), signal);
  const { n, entry = promise } = await last(get, { after: generation, entry: promise, isLast });
  return { generation: n, promise: entry };
}

/** The newest generation of a job that ended without a result; undefined if the job itself is the newest. */
export async function newerGeneration(
  store: RemoteStore,
  promise: DurablePromise,
  signal?: AbortSignal,
): Promise<DurablePromise | undefined> {
  if (!endedWithoutResult(promise)) return undefined;
  const { base, generation } = splitGeneration(promise.name);
  const newest = await newestGeneration(store, base, promise, { generation, signal });
  return newest.generation > generation ? newest.promise : undefined;
}
