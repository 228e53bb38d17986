/**
 * The record of one caller of a deployment. Quota and list are derived, and the promises decide: looks at them correct a lost
 * storage, a reservation whose edge died before it created the promise, and an end that was not reported.
 */
import {
  type CallerLimits,
  type ListedJob,
  type ListQuery,
  Names,
  type ObjectPart,
  type ObjectRecord,
  type ObservedJob,
  type PartHost,
  type ReportedJob,
  type ReserveAnswer,
  type StartedJob,
} from "../../core/jobs/index.ts";
import { type Answer, answered, getOf, type PromiseRecord, type ResonateClient } from "../../core/resonate/index.ts";
import { JobRefresher, MAX_JOBS_REFRESHED } from "./job-refresher.ts";
import { JobTable, RECORD_TABLES } from "./job-table.ts";
import { Recovery } from "./recovery.ts";

/** The largest number of steps of the recovery in one call or alarm. */
const MAX_RECOVERY_STEPS = 8;

/** The pause before the next chores: while work is left, and otherwise. In milliseconds. */
const BUSY_CHORES_MS = 1_000;
const CHORES_INTERVAL_MS = 86_400_000;

/** How many of a caller's newest jobs must be gone before the caller counts as forgotten. */
const MAX_JOBS_OF_FORGOTTEN = 5;

/** The remote methods of a caller's record. */
export interface RecordMethods {
  /** Enters a job that is about to be started. `requests`: how many requests to the Resonate server the caller is charged for. */
  reserve(
    key: string,
    job: StartedJob,
    limits: CallerLimits,
  ): Promise<{ answer: Answer<ReserveAnswer>; requests: number }>;
  stored(): Promise<number>;
  forget(id: string, isHidden: boolean): Promise<void>;
  note(jobs: readonly ObservedJob[], onlyKnown: boolean): Promise<void>;
  /** Records jobs of the caller that have ended or that durable functions have started, as reported or as a look finds them. */
  noteReports(key: string, ended: readonly ReportedJob[], started: readonly ReportedJob[]): Promise<void>;
  list(key: string, query: ListQuery): Promise<ListedJob[]>;
}

interface JobRecordOptions {
  host: PartHost;
  client: ResonateClient;
  /** Reads promises, together where it can. */
  reads: Pick<ResonateClient, "call">;
  /** Whether the Resonate server reports the ends of the caller's jobs. */
  areEndsReported: boolean;
  namespace: string;
  /** How many requests to the Resonate server the object has sent. */
  requests(): number;
  /** How long jobs are kept after their end, in milliseconds. */
  retentionMs: number;
  /** How many bytes a job may store at most. */
  maxJobBytes: number;
  /** Adds the object to the list of the callers' objects. */
  enlist(key: string): Promise<unknown>;
  /** Removes it from there. */
  delist(key: string): Promise<unknown>;
}

export class JobRecord implements ObjectPart, ObjectRecord {
  readonly name = "record";
  readonly tables = RECORD_TABLES;
  readonly jobs: JobTable;
  readonly refresher: JobRefresher;
  readonly #options: JobRecordOptions;
  readonly #recovery: Recovery;
  #beginning: Promise<void> | undefined;
  #catchingUp: Promise<void> | undefined;
  /** Whether the object is in the list of the callers' objects, or is being added. */
  #isListed = false;
  /** The requests that were charged to the caller. */
  #requestsCharged = 0;

  constructor(options: JobRecordOptions) {
    const { host, client, reads, namespace, retentionMs, maxJobBytes } = options;
    this.#options = options;
    this.jobs = new JobTable(host.sql, {
      refuse: (job) => firstOf(host.parts, (part) => part.refuse?.(job)),
      onStart: (job) => {
        for (const part of host.parts) part.onStart?.(job);
      },
      onEnd: (job) => {
        for (const part of host.parts) part.onEnd?.(job);
      },
    });
    this.refresher = new JobRefresher({
      jobs: this.jobs,
      client: { call: reads.call, decodeRecord: (record) => client.decodeRecord(record) },
      retentionMs,
      maxJobBytes,
      key: () => this.key,
      beforeEnd: (jobs) => Promise.all(host.parts.map((part) => part.beforeEnd?.(jobs))),
      afterNote: () => {
        for (const part of host.parts) part.afterNote?.();
      },
    });
    this.#recovery = new Recovery(this.jobs, client, namespace);
  }

  readonly methods: { [Name in keyof RecordMethods]: RecordMethods[Name] } = {
    reserve: (...args) => this.#reserveCharged(...args),
    stored: () => this.refresher.stored(),
    forget: (id, isHidden) => this.#forget(id, isHidden),
    note: (jobs, onlyKnown) => this.refresher.note(jobs, onlyKnown),
    noteReports: (...args) => this.#noteReports(...args),
    list: async (key, query) => {
      await this.begin(key);
      const areEndsReported = this.#options.areEndsReported && key !== "";
      return this.jobs.list(query, { nameAt: this.#options.namespace.length + key.length, areEndsReported });
    },
  };

  get key(): string {
    return this.#recovery.key ?? "";
  }

  get isBegun(): boolean {
    return this.#recovery.key !== undefined;
  }

  nameOf(id: string): string {
    return new Names([], this.#options.namespace, this.key).nameIn(id);
  }

  get(name: string): string | undefined {
    return this.jobs.get(name);
  }

  set(name: string, value: string): void {
    this.jobs.set(name, value);
  }

  refresh(jobs: readonly ReportedJob[]): Promise<(PromiseRecord | undefined)[]> {
    return this.refresher.refresh(jobs);
  }

  noteRecord(record: PromiseRecord): Promise<void> {
    return this.refresher.noteRecord(record);
  }

  load(): void {
    this.jobs.load();
    this.#isListed = false;
  }

  /** Begins the record of a caller, and waits for some steps of its recovery. */
  async begin(key: string): Promise<void> {
    if (!this.isBegun) {
      this.#beginning ??= this.#recovery.begin(key).finally(() => {
        this.#beginning = undefined;
      });
      await this.#beginning;
      this.#planChores(this.#recovery.isPending);
      await this.#options.host.arm();
    }
    if (!this.#isListed) void this.#enlist();
    if (this.#recovery.isPending) await this.#catchUp();
  }

  nextAt(): number {
    return this.isBegun ? Number(this.jobs.get("chores") ?? 0) : Number.POSITIVE_INFINITY;
  }

  /** Continues the recovery, and refreshes outdated jobs. */
  async run(now: number): Promise<void> {
    if (now < this.nextAt()) return;
    if (await this.#isForgotten().catch(() => false)) {
      const { key } = this;
      this.#options.host.clear();
      await this.#options.delist(key);
      return;
    }
    await this.#enlist();
    await this.#catchUp();
    const stale = this.refresher.overdue(MAX_JOBS_REFRESHED);
    await this.refresher.refresh(stale).catch(() => {}); // The next alarm tries again.
    this.#planChores(this.#recovery.isPending || stale.length === MAX_JOBS_REFRESHED);
  }

  #planChores(isBusy: boolean): void {
    this.jobs.set("chores", String(Date.now() + (isBusy ? BUSY_CHORES_MS : CHORES_INTERVAL_MS)));
  }

  /** Reserves a job. Concurrent calls do not charge the same request twice. */
  async #reserveCharged(key: string, job: StartedJob, limits: CallerLimits) {
    const { requests } = this.#options;
    const before = requests();
    const answer = await answered(() => this.#reserve(key, job, limits));
    const charged = requests() - Math.max(before, this.#requestsCharged);
    this.#requestsCharged = requests();
    return { answer, requests: charged };
  }

  async #reserve(key: string, job: StartedJob, limits: CallerLimits): Promise<ReserveAnswer> {
    await this.begin(key);
    if (limits.bytes > 0) await this.refresher.size(limits.bytes);
    const reserved = await this.#enter(job, limits);
    if (reserved === "full") await this.refresher.refreshPeriod(job.period);
    else if (reserved === "stored") await this.refresher.refresh(this.refresher.overdue(MAX_JOBS_REFRESHED));
    else return reserved;
    return this.#enter(job, limits);
  }

  /** Enters a job in the record, and waits until an alarm that it needs is set. */
  async #enter(job: StartedJob, limits: CallerLimits): Promise<ReserveAnswer> {
    const reserved = this.jobs.transaction(() => this.jobs.reserve(job, limits, Date.now()));
    await this.#options.host.armed;
    return reserved;
  }

  async #forget(id: string, isHidden: boolean): Promise<void> {
    this.jobs.transaction(() => this.jobs.forget(id, isHidden));
    if (!isHidden) await Promise.all(this.#options.host.parts.map((part) => part.onForget?.(id)));
  }

  async #noteReports(key: string, ended: readonly ReportedJob[], started: readonly ReportedJob[]): Promise<void> {
    // This is the object of callers without identity, and nobody has asked it for events.
    if (key === "" && !this.isBegun) return;
    await this.begin(key);
    await this.refresher.noteReports(this.#options.namespace + key, ended, started);
  }

  /** Adds this object to the deployment's list of callers' objects, which a backup reads. */
  async #enlist(): Promise<void> {
    const { key } = this.#recovery;
    if (this.#isListed || key === undefined) return;
    this.#isListed = true;
    if (this.jobs.get("listed") !== undefined) return;
    try {
      await this.#options.enlist(key);
      this.jobs.set("listed", "1");
    } catch {
      this.#isListed = false; // The next call lists it.
    }
  }

  /** Whether an operator has removed the caller's promises: the one that began the record, and those of its newest jobs. */
  async #isForgotten(): Promise<boolean> {
    if (!(await this.#recovery.isMarkGone())) return false;
    const ids = this.jobs.newest(MAX_JOBS_OF_FORGOTTEN);
    const found = await Promise.all(ids.map((id) => this.#options.client.call(getOf(id))));
    return found.every((record) => record === undefined);
  }

  /** Takes some steps of the recovery. The next call or alarm repeats a step that fails. */
  async #catchUp(): Promise<void> {
    const steps = async () => {
      for (let n = 0; n < MAX_RECOVERY_STEPS && this.#recovery.isPending; n++) await this.#recovery.step();
    };
    this.#catchingUp ??= steps()
      .catch(() => {})
      .finally(() => {
        this.#catchingUp = undefined;
      });
    await this.#catchingUp;
  }
}

function firstOf<Part, Found>(parts: readonly Part[], find: (part: Part) => Found | undefined): Found | undefined {
  for (const part of parts) {
    const found = find(part);
    if (found !== undefined) return found;
  }
  return undefined;
}
