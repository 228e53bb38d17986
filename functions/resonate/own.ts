/**
 * The jobs that a caller started, found by tags. A job that the caller created carries them itself; of a shared one that
 * was there, the record that the caller started it does.
 */
import type { PromiseRecord } from "@resonatehq/sdk";
import type { AnyJob } from "../jobs/job.ts";
import type { Names } from "./names.ts";
import type { DurablePromise } from "./promise.ts";
import type { Wire } from "./wire.ts";

/** A job that a caller started. */
export interface OwnJob {
  name: string;
  job: AnyJob;
  /** When this caller first started it, in milliseconds since the epoch. */
  startedAt: number;
  /** Undefined for a shared job that another caller created. */
  promise: DurablePromise | undefined;
}

/** The most promises that are looked at, and how many are asked for at once. */
const MAX_FOUND = 5_000;
const PAGE = 1_000;

const CALLER = "durable-mcp:caller";
const KIND = "durable-mcp:kind";

/** The tags by which a job is found for its caller. */
export const ownTags = (names: Names, job: Pick<AnyJob, "func">) => ({ [CALLER]: names.owner, [KIND]: job.func });

/** The caller's jobs of one kind or of all, in no order; `complete` is false when there are more than are looked at. */
export async function findOwn(wire: Wire, names: Names, kind: string | undefined, signal?: AbortSignal) {
  const tags = { [CALLER]: names.owner, ...(kind !== undefined && { [KIND]: kind }) };
  const jobs: OwnJob[] = [];
  let looked = 0;
  let cursor: string | undefined;
  do {
    const page = await wire.search({ tags, limit: PAGE, ...(cursor !== undefined && { cursor }) }, signal);
    jobs.push(...page.promises.flatMap((record) => ownJob(names, record) ?? []));
    looked += page.promises.length;
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined && looked < MAX_FOUND);
  return { jobs, complete: cursor === undefined };
}

function ownJob(names: Names, record: PromiseRecord): OwnJob | undefined {
  const [id = "", child] = record.id.split(":", 2);
  const found = names.find(id);
  const promise = child === undefined ? names.decode(record) : undefined;
  return found && (child !== undefined || promise) && { ...found, startedAt: record.createdAt, promise };
}
