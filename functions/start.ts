import { type Job, withGeneration } from "./jobs/job.ts";
import type { DurablePromise, RemoteStore } from "./resonate/store.ts";
import { endedWithoutResult } from "./status.ts";

/**
 * Starts a job, or finds it: one round trip for a job that is new, running or complete. A job that ended without a
 * result is started again as the next generation of its name; concurrent restarts create the same promise, and so
 * are one.
 *
 * @throws {ResonateUnavailable} nothing half-started: the promise exists, and will run, or it does not
 * @throws {NameTaken}
 */
export async function startJob<Args>(
  store: RemoteStore,
  job: Job<Args>,
  args: Args,
  now: number,
): Promise<DurablePromise> {
  const base = job.name(args);
  const first = await store.create(job, base, args, now);
  if (!endedWithoutResult(first)) return first;
  let { generation, promise } = await newestGeneration(store, base, first);
  if (!endedWithoutResult(promise)) promise = await store.join(promise);
  while (endedWithoutResult(promise)) {
    generation += 1;
    promise = await store.create(job, withGeneration(base, generation), args, now);
  }
  return promise;
}

/**
 * The newest generation of `base`, given its first. Every generation but the newest ended without a result and the
 * numbers have no gaps, so it is found in a logarithmic number of reads: doubling, then halving.
 */
export async function newestGeneration(
  store: RemoteStore,
  base: string,
  first: DurablePromise,
): Promise<{ generation: number; promise: DurablePromise }> {
  let newest = { generation: 1, promise: first };
  let missing = Number.POSITIVE_INFINITY;
  while (endedWithoutResult(newest.promise) && newest.generation + 1 < missing) {
    const next =
      missing === Number.POSITIVE_INFINITY ? newest.generation * 2 : Math.floor((newest.generation + missing) / 2);
    const promise = await store.get(withGeneration(base, next));
    if (promise) newest = { generation: next, promise };
    else missing = next;
  }
  return newest;
}
