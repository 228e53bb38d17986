/** What the tools that answer with the state of jobs share. */
import * as z from "zod";
import {
  type CurrentJob,
  type DurablePromise,
  type JobView,
  newerGeneration,
  type Partial,
  type PartialRange,
  partialOf,
  type RemoteStore,
  statusOf,
} from "../../core/jobs/index.ts";
import { costOf, MAX_ANSWER } from "../../core/tools/index.ts";

/** For hosts that search tools: these two belong to every tool that starts a job. */
export const alwaysListed = {
  "anthropic/alwaysLoad": true,
  "anthropic/searchHint": "job status and result of what was started: poll, wait, collect",
};

/** How much of partial results an answer holds, in characters, and how many are read for it, of all its jobs together. */
const MAX_PARTIAL_CHARACTERS = 10_000;
const MAX_PARTIAL_OUTPUTS = 200;
const MAX_OUTPUTS_OF_ONE = 100;

/** What an answer about so many jobs may hold of the partial results of each. */
export const partialRangeOf = (from: number | undefined, jobCount: number): PartialRange => ({
  from,
  limit: MAX_PARTIAL_CHARACTERS / jobCount,
  maxOutputs: Math.min(MAX_OUTPUTS_OF_ONE, Math.ceil(MAX_PARTIAL_OUTPUTS / jobCount)),
});

export const partial_from = z.int().min(0).optional().describe("Partial results known.");

/** The partial results of a running job, where it is known to have emitted some. */
export async function partialIn(
  store: RemoteStore,
  { promise, feed }: CurrentJob,
  range: PartialRange,
  signal: AbortSignal,
): Promise<Partial | undefined> {
  if (!feed.entry?.emitted && range.from === undefined) return undefined;
  return partialOf(store, promise.id, range, signal);
}

/** The name and status of a newer attempt at a job that ended without a result. */
export async function newerOf(
  store: RemoteStore,
  promise: DurablePromise,
  signal?: AbortSignal,
): Promise<Pick<JobView, "newer">> {
  const newer = await newerGeneration(store, promise, signal);
  return newer ? { newer: { job_name: newer.name, status: statusOf(newer) } } : {};
}

/** The parts of jobs' results that may refer to files; `foreign`: that of each answer of a wrapped server, by job name. */
export function referringResults(views: readonly JobView[], foreign: ReadonlyMap<string, unknown>): unknown[] {
  // An answer that parts of results fill has no room for lines about files.
  const hasRoom = costOf(views) < MAX_ANSWER / 2;
  return views.map(({ job_name, result, summary }) => {
    if (!foreign.has(job_name)) return result;
    return result !== undefined || (summary && hasRoom) ? foreign.get(job_name) : undefined;
  });
}
