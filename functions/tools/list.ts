import * as z from "zod";
import { JOBS } from "../jobs/index.ts";
import type { OwnJob, RemoteStore } from "../resonate/store.ts";
import { JobStatus, viewOf } from "../status.ts";
import { lenientNumber, lenientOptional } from "./arguments.ts";
import { defineTool, ToolError } from "./tool.ts";

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;

/** The most shared jobs that one call reads the promises of. */
const MAX_READS = 200;

const STATUSES = JobStatus.exclude(["not_found"]).options;
const KINDS = JOBS.map((job) => job.func);

const ListedJob = z.object({
  job_name: z.string(),
  kind: z.string(),
  status: JobStatus,
  started_at: z.string().describe("ISO 8601, UTC."),
  finished_at: z.string().optional().describe("ISO 8601, UTC."),
});

export const listJobs = defineTool({
  name: "list_jobs",
  title: "List jobs",
  description:
    "List the jobs you started, in any session, newest first: timers, gatherings and ranges. For names that were " +
    "forgotten; results are collected with probe_status or await_result.",
  input: z.object({
    status: lenientOptional(z.enum(STATUSES)).describe(`Only jobs of this status: ${STATUSES.join(", ")}.`),
    kind: lenientOptional(z.enum(KINDS)).describe(`Only jobs of this kind: ${KINDS.join(", ")}.`),
    limit: lenientOptional(lenientNumber(z.int().min(1).max(MAX_LIMIT))).describe(
      `The most jobs to return, a whole number from 1 to ${MAX_LIMIT}; ${DEFAULT_LIMIT} when left out.`,
    ),
    cursor: lenientOptional(z.string()).describe("The next_cursor of the call before; left out in the first call."),
  }),
  output: z.object({
    jobs: z.array(ListedJob),
    next_cursor: z.string().optional().describe("Pass it as cursor to see older jobs; absent when there are none."),
    note: z.string().optional(),
  }),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  async run({ status, kind, limit = DEFAULT_LIMIT, cursor }, { store, signal }) {
    const { jobs: all, complete } = await store.own(kind, signal);
    const older = startAfter(all.sort(newestFirst), cursor);
    const { jobs, seen } = await take(store, older, limit, status, signal);
    const last = older[seen - 1];
    return {
      jobs,
      ...(last && seen < older.length && { next_cursor: cursorOf(last) }),
      ...(!complete && { note: "There are more jobs than can be listed. Some are missing; filter by kind." }),
    };
  },
});

/** Up to `limit` of `jobs` with that status, and how many of `jobs` were gone through for them. */
async function take(
  store: RemoteStore,
  jobs: OwnJob[],
  limit: number,
  status: JobStatus | undefined,
  signal: AbortSignal,
) {
  const taken: z.infer<typeof ListedJob>[] = [];
  let seen = 0;
  for (let reads = 0; taken.length < limit && seen < jobs.length && reads < MAX_READS; ) {
    const batch = jobs.slice(seen, seen + limit - taken.length);
    const listed = await Promise.all(batch.map((job) => list(store, job, signal)));
    seen += batch.length;
    reads += batch.filter((job) => !job.promise).length;
    taken.push(...listed.filter((job) => status === undefined || job.status === status));
  }
  return { jobs: taken, seen };
}

async function list(store: RemoteStore, { name, job, startedAt, promise }: OwnJob, signal: AbortSignal) {
  const { status, finished_at } = viewOf(name, promise ?? (await store.get(name, signal)));
  const started_at = new Date(startedAt).toISOString();
  return { job_name: name, kind: job.func, status, started_at, ...(finished_at !== undefined && { finished_at }) };
}

type Position = Pick<OwnJob, "startedAt" | "name">;

function newestFirst(a: Position, b: Position): number {
  return b.startedAt - a.startedAt || (a.name < b.name ? -1 : 1);
}

/** Where a page ends. It says nothing of whose jobs are listed: they are always the caller's. */
function cursorOf({ startedAt, name }: Position): string {
  return `${startedAt} ${name}`;
}

function startAfter(jobs: OwnJob[], cursor: string | undefined): OwnJob[] {
  if (cursor === undefined) return jobs;
  const [, startedAt, name] = /^(\d{1,15}) (.+)$/s.exec(cursor) ?? [];
  if (startedAt === undefined || name === undefined) {
    throw new ToolError("cursor: it is none of list_jobs. Accepted: the next_cursor of an earlier call, as it was.");
  }
  return jobs.filter((job) => newestFirst({ startedAt: Number(startedAt), name }, job) < 0);
}
