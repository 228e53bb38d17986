/** Keeps the record of a caller's jobs correct: reads their promises, and records how they look. */

import { type ObservedJob, type ReportedJob, type StartedJob, startedJob } from "../../core/jobs/index.ts";
import {
  type Channel,
  cleanUpId,
  getOf,
  isRoot,
  markedBytes,
  type PromiseRecord,
  type ResonateClient,
  reportedBytesIn,
  storedMarkId,
  undecryptableIn,
} from "../../core/resonate/index.ts";
import { type JobTable, SIZE_CHECK_INTERVAL_MS } from "./job-table.ts";

/** How many promises are read before a start is refused, and in an alarm. */
export const MAX_JOBS_REFRESHED = 40;

/** The promise of a job. */
export type JobPromise = Pick<PromiseRecord, "id" | "createdAt" | "timeoutAt">;

interface RefresherOptions {
  jobs: JobTable;
  client: Pick<ResonateClient, "call" | "decodeRecord">;
  /** How long jobs are kept after their end, in milliseconds. */
  retentionMs: number;
  /** How many bytes a job may store at most. */
  maxJobBytes: number;
  /** The caller's key; empty while it is not known. */
  key(): string;
  /** Called before the ends of jobs are recorded. */
  beforeEnd?(jobs: readonly StartedJob[]): Promise<unknown>;
  /** Called when what was seen of jobs has been recorded. */
  afterNote?(): void;
}

export class JobRefresher {
  readonly #options: RefresherOptions;
  readonly #jobs: JobTable;
  readonly #client: RefresherOptions["client"];
  /** The refreshes that are under way, by period. */
  readonly #refreshing = new Map<string, Promise<unknown>>();
  /** When jobs that may have grown were last looked at for their sizes, in milliseconds since the epoch. */
  #sizedAt: number | undefined;
  /** How many jobs were cut off, or found still cleaning up, since the last look at the sizes of ended jobs. */
  #cutOffCount = 0;

  constructor(options: RefresherOptions) {
    this.#options = options;
    this.#jobs = options.jobs;
    this.#client = options.client;
  }

  /** The stored bytes of the caller's jobs. */
  async stored(): Promise<number> {
    if (this.#cutOffCount > 0) await this.#sizeEnded().catch(() => {}); // A later call looks again.
    return this.#jobs.stored;
  }

  /** Records jobs that workers report. The ids of the caller's own jobs begin with `prefix`. */
  async noteReports(prefix: string, ended: readonly ReportedJob[], started: readonly ReportedJob[]): Promise<void> {
    // If one of the caller's own jobs is not in the table, a durable function started it.
    const isChild = (id: string) =>
      this.#options.key() !== "" && id.startsWith(prefix) && isRoot(id) && this.#jobs.kindOf(id) === undefined;
    const jobs = [
      ...ended.filter((job) => this.#jobs.isPending(idOf(job)) || isChild(idOf(job))),
      ...started.filter((job) => isChild(idOf(job))),
    ];
    for (let i = 0; i < jobs.length; i += MAX_JOBS_REFRESHED)
      await this.refresh(jobs.slice(i, i + MAX_JOBS_REFRESHED), { isChild });
  }

  /** Records the observed state of jobs. `isSized`: includes the bytes that workers have marked, as in {@link #withMarks}. */
  async note(jobs: readonly ObservedJob[], onlyKnown: boolean, isSized = false): Promise<void> {
    const ended = jobs.filter(
      (job): job is StartedJob => job.state !== undefined && job.state !== "pending" && this.#jobs.isPending(job.id),
    );
    await this.#options.beforeEnd?.(ended);
    for (const job of ended.filter(isCut)) {
      this.#jobs.resize(job.id, Date.now());
      this.#cutOffCount += 1;
    }
    const sized = isSized ? await Promise.all(jobs.map((job) => this.#withMarks(job))) : jobs;
    this.#jobs.transaction(() => {
      for (const job of sized) this.#jobs.note(job, Date.now(), onlyKnown);
    });
    this.#options.afterNote?.();
  }

  /** Adds the bytes that its worker has marked to a job that runs or was cut off. */
  async #withMarks(job: ObservedJob): Promise<ObservedJob> {
    if (job.state !== "pending" && !isCut(job)) return job;
    const get = (id: string) => this.#client.call(getOf(id));
    const cleanUp = job.state === "rejected_canceled" ? await get(cleanUpId(job.id)) : undefined;
    const beside = cleanUp && reportedBytesIn(cleanUp.value);
    const marked = beside ?? (await markedBytes(async (n) => (await get(storedMarkId(job.id, n))) !== undefined));
    const isCleaning = cleanUp?.state === "pending";
    this.#jobs.resize(job.id, isCleaning ? Date.now() + SIZE_CHECK_INTERVAL_MS : undefined);
    if (isCleaning) this.#cutOffCount += 1;
    return { ...job, bytes: job.bytes + marked };
  }

  /** Looks at the sizes of jobs that were cut off, as their ends do not state them. */
  async #sizeEnded(): Promise<void> {
    const ids = this.#jobs.unsized(Date.now(), MAX_JOBS_REFRESHED);
    this.#cutOffCount = 0;
    if (ids.length > 0) await this.refresh(ids, { isSized: true });
  }

  /**
   * Looks at the sizes of ended jobs every {@link SIZE_CHECK_INTERVAL_MS} and after {@link MAX_JOBS_REFRESHED} that were cut off; every {@link SIZE_CHECK_INTERVAL_MS} also at
   * those of running jobs, if these could hold more than is left of `maxBytes` bytes.
   */
  async size(maxBytes: number): Promise<void> {
    const now = Date.now();
    if (this.#cutOffCount >= MAX_JOBS_REFRESHED) await this.#sizeEnded();
    // The time of the last look outlasts a restart.
    this.#sizedAt ??= Number(this.#jobs.get("sized") ?? 0);
    if (now - this.#sizedAt < SIZE_CHECK_INTERVAL_MS) return;
    this.#sizedAt = now;
    this.#jobs.set("sized", String(now));
    await this.#sizeEnded();
    const left = Math.max(0, maxBytes - this.#jobs.stored);
    if (!this.#jobs.hasUnsized(Math.floor(left / this.#options.maxJobBytes) + 1)) return;
    await this.refresh(this.#jobs.leastSeen(now, MAX_JOBS_REFRESHED), { isSized: true });
  }

  /** Jobs that should have ended, and those whose retention is over. */
  overdue(limit: number): string[] {
    const now = Date.now();
    return this.#jobs.stale(now, now - this.#options.retentionMs, limit);
  }

  /** Looks at jobs that count in a period. Starts in the meantime share the look. */
  async refreshPeriod(period: string): Promise<void> {
    const refreshing =
      this.#refreshing.get(period) ??
      this.refresh(this.#jobs.reserved(period, Date.now(), MAX_JOBS_REFRESHED)).finally(() =>
        this.#refreshing.delete(period),
      );
    this.#refreshing.set(period, refreshing);
    await refreshing;
  }

  /** Has the end of a job pushed, and records one that has ended. Returns its promise, if it has one yet. */
  async listen(id: string, { address }: Channel): Promise<JobPromise | undefined> {
    const record = await this.#client.call({ kind: "promise.register_listener", data: { awaited: id, address } });
    // A look removes a job that was never created.
    if (!record) await this.refresh([id]);
    else if (record.state !== "pending") await this.noteRecord(record);
    return record;
  }

  noteRecord(record: PromiseRecord): Promise<void> {
    return this.note([startedJob(record, this.#options.key())], true);
  }

  /**
   * Reads the state of jobs and records it. `isChild`: whether to add a job that is not in the table, as one that a durable
   * function started for the caller. `isSized`: as in {@link note}. Resolves with the promises, in the order of the jobs.
   */
  async refresh(
    jobs: readonly ReportedJob[],
    { isChild = () => false, isSized = false }: { isChild?: (id: string) => boolean; isSized?: boolean } = {},
  ): Promise<(PromiseRecord | undefined)[]> {
    const look = (job: ReportedJob) =>
      typeof job === "string" ? this.#client.call(getOf(job)) : this.#client.decodeRecord(job);
    // Of a promise that cannot be decrypted the state is known: it must not keep others from being looked at.
    const unread = (error: unknown) => undecryptableIn(error) ?? Promise.reject(error);
    const found = await Promise.all(jobs.map((job) => look(job).catch(unread)));
    const ids = jobs.map(idOf);
    const key = this.#options.key();
    const seen = ids.map((id, i): ObservedJob => {
      const record = found[i];
      return record ? startedJob(record, key) : { id };
    });
    const children = seen.filter(({ id, state }) => state && isChild(id));
    this.#jobs.transaction(() => {
      for (const child of children) this.#jobs.noteChild(child as StartedJob, Date.now());
    });
    await this.note(seen, true, isSized);
    return found;
  }
}

/** Whether a job was cut off, so that its end does not state its stored bytes. */
const isCut = (job: ObservedJob): job is StartedJob =>
  (job.state === "rejected_canceled" || job.state === "rejected_timedout") && job.bytes > 0;

const idOf = (job: ReportedJob): string => (typeof job === "string" ? job : job.id);
