import { type Job, splitGeneration, withGeneration } from "../definitions/job.ts";
import type { DurablePromise, RemoteStore } from "./remote-store.ts";
import { endedWithoutResult } from "./status.ts";

/** How often a call starts a job anew that others have started meanwhile, and that has ended again without a result. */
const MOST_STARTS = 4;

/**
 * Starts a job, or finds it: one round trip for a job that is new, running or complete. A job that ended without a
 * result, or whose result is not fresh any more, is started again as the next generation of its name; concurrent
 * restarts create the same promise, and so are one.
 *
 * @throws {ResonateUnavailable} nothing half-started: the promise exists, and will run, or it does not
 * @throws {NotStarted}
 */
export async function startJob<Args>(
  store: RemoteStore,
  job: Job<Args>,
  args: Args,
  now: number,
): Promise<DurablePromise> {
  const base = await job.name(args);
  const first = await store.create(job, base, args, now);
  if (!isOver(job, first, now)) return first;
  let { generation, promise } = await newestGeneration(store, base, first);
  if (!isOver(job, promise, now)) promise = await store.join(promise);
  // One that ends before it can be told of is told of as it is.
  for (let starts = 0; starts < MOST_STARTS && isOver(job, promise, now); starts++) {
    const earlier = promise;
    generation += 1;
    promise = await store.create(job, withGeneration(base, generation), args, now, earlier);
  }
  return promise;
}

/** Whether a new start makes the next generation. */
function isOver<Args>(job: Job<Args>, promise: DurablePromise, now: number): boolean {
  const args = promise.args as Args;
  if (promise.state !== "resolved") return endedWithoutResult(promise) && job.restarts(reasonOf(promise), args);
  const fresh = job.freshFor(promise.value, args);
  return fresh !== undefined && now >= (promise.settledAt ?? promise.createdAt) + fresh;
}

/** Why a job failed, where it did. */
function reasonOf({ state, value }: DurablePromise): string | undefined {
  return state === "rejected" && value instanceof Error ? value.message : undefined;
}

/**
 * The newest generation of `base`, given its first. The numbers have no gaps, so it is found in a logarithmic number of
 * reads: doubling, then halving.
 */
export async function newestGeneration(
  store: RemoteStore,
  base: string,
  first: DurablePromise,
): Promise<{ generation: number; promise: DurablePromise }> {
  let newest = { generation: 1, promise: first };
  let missing = Number.POSITIVE_INFINITY;
  // A job that has run only once, and well, is not looked for again: its kind may say that its results grow old.
  const mayGrowOld = first.state === "resolved" && first.job.freshFor(first.value, first.args) !== undefined;
  while ((endedWithoutResult(newest.promise) || mayGrowOld) && newest.generation + 1 < missing) {
    const next =
      missing === Number.POSITIVE_INFINITY ? newest.generation * 2 : Math.floor((newest.generation + missing) / 2);
    const promise = await store.get(withGeneration(base, next));
    if (promise) newest = { generation: next, promise };
    else missing = next;
  }
  return newest;
}

/**
 * The newest generation of a job that ended without a result, where there is one after it: what whoever asks for the old
 * one will want to know.
 */
export async function newerGeneration(
  store: RemoteStore,
  promise: DurablePromise,
  signal?: AbortSignal,
): Promise<DurablePromise | undefined> {
  if (!endedWithoutResult(promise)) return undefined;
  const { base, generation } = splitGeneration(promise.name);
  const next = await store.get(withGeneration(base, generation + 1), signal);
  return next && (await newestGeneration(store, base, { ...promise, state: "rejected" })).promise;
}
