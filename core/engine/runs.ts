/**
 * The runs of a job that continues under the same name with other arguments (`ctx.continueAs`). Each run has its own
 * journal, so that the records of earlier runs are not read again. From the second on, a run is a promise, created under
 * the lease on the job's task: it holds the arguments and the state that the run begins with, and the ids of its records
 * begin with its id. Creating the promise ends the previous run; a worker that repeats this after a crash finds it.
 */
import { decodeValue } from "../resonate/codec.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import { runId } from "../resonate/ids.ts";
import { last } from "../resonate/sequence.ts";
import { bytesIn } from "../resonate/size.ts";
import type { Lease } from "./job-lease.ts";
import { Journal } from "./journal.ts";
import type { Run } from "./state.ts";

/** The run that a promise holds. */
export function runIn(n: number, { param, createdAt }: PromiseRecord): Run {
  const stored = decodeValue(param) as Omit<Run, "n" | "startedAt">;
  return { ...stored, n, startedAt: createdAt, storedBytes: stored.storedBytes + bytesIn(param) };
}

/** The newest run of a job; undefined if that is the first. `known`: the number of an existing run, to search from. */
export async function newestRun(
  job: string,
  get: (id: string) => Promise<PromiseRecord | undefined>,
  knownRun = 1,
): Promise<Run | undefined> {
  const newest = await last((n) => get(runId(job, n)), { after: knownRun });
  const promise = newest.entry ?? (newest.n > 1 ? await get(runId(job, newest.n)) : undefined);
  return promise && runIn(newest.n, promise);
}

/** Reads the records that a journal lacks, or those of a newer run; returns the journal of the newest run. */
export async function readNewest(
  journal: Journal,
  job: string,
  get: (id: string) => Promise<PromiseRecord | undefined>,
  first: (id: string, n: number) => Promise<PromiseRecord | undefined> = get,
): Promise<Journal> {
  const knownRun = journal.run?.n ?? 1;
  const [run] = await Promise.all([
    newestRun(job, get, knownRun),
    journal.load(runId(job, knownRun), knownRun === 1 ? first : get),
  ]);
  if (!run || run.n === knownRun) return journal;
  const newest = new Journal(run);
  await newest.load(runId(job, run.n), get);
  return newest;
}

/** Begins the next run of a job, or finds it if an earlier worker has begun it. @throws {LeaseLost} */
export async function beginRun(
  before: Journal,
  lease: Lease,
  run: Pick<Run, "args" | "version" | "before" | "children">,
): Promise<Journal> {
  const n = (before.run?.n ?? 1) + 1;
  const param: Omit<Run, "n" | "startedAt"> = {
    ...run,
    storedBytes: before.storedBytes,
    outsideBytes: before.outsideBytes,
    newestMark: before.newestMark,
    seed: crypto.randomUUID(),
    v: lease.version,
  };
  const promise = await lease.create(runId(lease.id, n), param, "resolved");
  return new Journal(runIn(n, promise));
}
