import * as z from "zod";
import type { Job } from "../../core/author/index.ts";
import {
  activityOf,
  type Cursor,
  currentJobOf,
  cursorIn,
  JobStatus,
  JobView,
  listJobs as jobsOf,
  type OwnJob,
  type OwnStep,
  type RemoteStore,
  stateOf,
  textOf,
  viewOf,
  wordsOf,
} from "../../core/jobs/index.ts";
import {
  builtInTool,
  costOf,
  MAX_ANSWER,
  refusal,
  type Tool,
  ToolError,
  withShortestTexts,
} from "../../core/tools/index.ts";

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;

/** The most jobs that one call reads. */
const MAX_READ_JOBS = 200;

/** The most words of a search. */
const MAX_WORDS = 8;

const STATUSES = JobStatus.exclude(["not_found"]).options;

const ListedJob = z.object({
  job_name: z.string(),
  kind: z.string(),
  labels: z.array(z.string()).optional(),
  status: JobStatus,
  started_at: z.string().describe("ISO 8601, UTC."),
  finished_at: z.string().optional().describe("ISO 8601, UTC."),
  ...JobView.pick({ cleanup: true, doing: true, waiting_for: true }).shape,
});

export function listJobs(jobs: readonly Job[]): Tool {
  const kinds = jobs.map(({ kind }) => kind);
  return builtInTool({
    name: "list_jobs",
    title: "List jobs",
    description: "List your jobs of any session, newest first; search: name, label.",
    input: z.object({
      status: z.enum(STATUSES).optional(),
      kind: z.enum(kinds).optional(),
      search: z
        .string()
        .refine((text) => text.length <= 200, "must have up to 200 characters")
        .refine((text) => wordsOf(text).length <= MAX_WORDS, `must have up to ${MAX_WORDS} words`)
        .optional(),
      limit: z.int().min(1).max(MAX_LIMIT).optional(),
      cursor: z.string().optional().describe("next_cursor."),
    }),
    output: z.object({
      jobs: z.array(ListedJob),
      stored: z
        .object({ bytes: z.number(), limit: z.number() })
        .optional()
        .describe("What is stored of your jobs, and how much may be."),
      next_cursor: z.string().optional().describe("The cursor of older jobs; absent when there are none."),
      note: z.string().optional(),
    }),
    annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
    async run({ status, kind, search, limit = DEFAULT_LIMIT, cursor }, { store, signal }) {
      const from = cursor ? cursorIn(cursor) : undefined;
      if (cursor && !from) {
        throw new ToolError(
          refusal("list_jobs", [
            "cursor: it is not of list_jobs. Accepted: the next_cursor of an earlier call, unchanged.",
          ]),
        );
      }
      const state = status && stateOf(status);
      // Each page of a search may go through many jobs, and the status may leave out all of the page.
      const page = search !== undefined && status ? Math.max(limit, DEFAULT_LIMIT) : limit;
      // One job more than an answer holds shows whether there are others.
      const steps = jobsOf(store, { kind, state, search, cursor: from, limit: page + 1 }, signal);
      const [{ jobs, undecryptable, next, complete }, stored] = await Promise.all([
        take(store, steps, limit, status, signal),
        from ? undefined : storedOf(store),
      ]);
      const note = [
        !complete && "There are more jobs than can be listed: filter by kind.",
        undecryptable.length > 0 &&
          `Left out are ${undecryptable.length} that cannot be decrypted, such as ${undecryptable[0]}: tell the operator of this server.`,
      ].filter(Boolean);
      return {
        jobs,
        ...(stored && { stored }),
        ...(next && { next_cursor: textOf(next) }),
        ...(note.length > 0 && { note: note.join(" ") }),
      };
    },
  });
}

/** How many bytes of the caller's jobs are stored, and how many may be; undefined without a limit. */
async function storedOf({ record, records }: RemoteStore): Promise<{ bytes: number; limit: number } | undefined> {
  const limit = records?.limits.bytes ?? 0;
  return limit > 0 && record ? { bytes: await record.stored(), limit } : undefined;
}

/** Up to `limit` jobs with a status, as many as an answer holds, and the cursor of the next ones. */
async function take(
  store: RemoteStore,
  steps: AsyncGenerator<OwnStep, boolean>,
  limit: number,
  status: JobStatus | undefined,
  signal: AbortSignal,
) {
  const listedJobs = new Map<string, z.infer<typeof ListedJob>>();
  const undecryptable: string[] = [];
  let room = MAX_ANSWER - 1_000;
  let last: Cursor | undefined;
  let isSearchEnd = false;
  for (let readCount = 0; ;) {
    const batch: OwnStep[] = [];
    while (batch.length < limit - listedJobs.size && readCount < MAX_READ_JOBS) {
      const { done, value } = await steps.next();
      if (done) {
        const isFull = await takeFrom(batch);
        return { jobs: [...listedJobs.values()], undecryptable, next: isFull ? last : undefined, complete: value };
      }
      isSearchEnd = value.isSearchEnd === true;
      readCount = isSearchEnd ? MAX_READ_JOBS : readCount + 1;
      batch.push(value);
    }
    const isFull = await takeFrom(batch);
    if (!isFull && listedJobs.size < limit && readCount < MAX_READ_JOBS) continue;
    // A step after the passed job would search on.
    const isAll = !isFull && !isSearchEnd && (await steps.next()).done;
    return { jobs: [...listedJobs.values()], undecryptable, next: isAll ? undefined : last, complete: true };
  }

  /** Returns whether the answer holds no more. */
  async function takeFrom(batch: readonly OwnStep[]): Promise<boolean> {
    const views = await Promise.all(batch.map(({ job }) => job && listedJob(store, job, status, signal)));
    for (const [i, { cursor, isUndecryptable }] of batch.entries()) {
      if (isUndecryptable) undecryptable.push(cursor.name);
      const job = views[i];
      if (job && !listedJobs.has(job.job_name)) {
        room -= costOf(job) + 1;
        if (room < 0) return true;
        listedJobs.set(job.job_name, job);
      }
      last = cursor;
    }
    return false;
  }
}

/** A job as it is listed; undefined for a job that is gone, or has another status than the wanted one. */
async function listedJob(
  store: RemoteStore,
  { name, job, startedAt, promise, labels }: OwnJob,
  wantedStatus: JobStatus | undefined,
  signal: AbortSignal,
) {
  const current = promise ?? (await store.get(name, signal));
  if (!current) return undefined; // its retention is over
  const { status, finished_at, cleanup } = viewOf(name, current);
  if (wantedStatus !== undefined && status !== wantedStatus) return undefined;
  const started_at = new Date(startedAt).toISOString();
  const activity = status === "running" && activityOf(await currentJobOf(store, current, signal, "recent"), Date.now());
  const times = { started_at, ...(finished_at !== undefined && { finished_at }) };
  return {
    job_name: name,
    kind: job.kind,
    ...(labels.length > 0 && { labels: [...labels] }),
    status,
    ...times,
    ...(cleanup && { cleanup }),
    ...(activity && withShortestTexts(activity)),
  };
}
