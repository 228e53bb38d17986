/** Gathers what happens in a worker for its next report to operators. */
import {
  FAILED_PREFIX,
  type FailedJob,
  firstLine,
  MAX_NAMED_COUNTS,
  MAX_NAMED_JOBS,
  MAX_STACK_CHARACTERS,
  type WaitingJob,
  type WorkerReport,
} from "./worker-report.ts";

/** How many failed and how many waiting jobs are kept for reports, and how many waiting ones are remembered until they continue. */
const MAX_STORED_JOBS = 10_000;

/** The state of a worker at the time of a report. */
export type WorkerState = Omit<WorkerReport, "n" | "slots" | keyof News> & { running: number; most: number };

/** What has happened since the last report. */
export type News = Pick<WorkerReport, "counts" | "failed" | "waits" | "slowest">;

/** What a runner reports to the account's Resonate server with its answer to a task. */
export interface RunnerNews {
  kinds: WorkerReport["kinds"];
  news: News;
}

export interface EndedJob {
  job: string;
  kind: string;
  outcome: "complete" | "failed" | "cancelled";
  /** How long it took from its start, in milliseconds. */
  ms: number;
  reason?: string | undefined;
  stack?: string | undefined;
}

export class WorkerStats {
  readonly #counts = new Map<string, number>();
  readonly #slowest = new Map<string, { job: string; ms: number }>();
  readonly #waits = new Map<string, WaitingJob>();
  /** The jobs that were reported as waiting. */
  readonly #reported = new Set<string>();
  readonly #failed: FailedJob[] = [];
  #n: number;
  /** How many jobs wait for a slot. */
  waiting = 0;
  /** The last error after which a step was not retried, by job. */
  readonly #stepErrors = new Map<string, { reason: string; stack: string }>();
  readonly #onNews: () => void;

  /** `n`: the number of the last report that was sent. */
  constructor(onNews: () => void, n = 0) {
    this.#onNews = onNews;
    this.#n = n;
  }

  count(kind: string, name: string, n = 1): void {
    const hasRoom = this.#counts.size < MAX_NAMED_COUNTS || this.#counts.has(`${kind} ${name}`);
    const key = hasRoom || !name.startsWith(FAILED_PREFIX) ? `${kind} ${name}` : `${kind} ${FAILED_PREFIX}other`;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + n);
    this.#onNews();
  }

  /** Keeps the stack of an error that a step threw, as the error that the function receives has no stack of the author's code. */
  stepFailed(job: string, error: { reason: string; stack: string }): void {
    this.#stepErrors.set(job, error);
    const [oldest] = this.#stepErrors.keys();
    if (this.#stepErrors.size > MAX_NAMED_JOBS && oldest !== undefined) this.#stepErrors.delete(oldest);
  }

  ended({ job, kind, outcome, ms, reason = "", ...error }: EndedJob): void {
    const last = this.#stepErrors.get(job);
    this.#stepErrors.delete(job);
    const stack = last && reason.includes(last.reason) ? last.stack : error.stack;
    this.count(kind, outcome);
    this.count(kind, "ms", ms);
    this.#addDuration(kind, job, ms);
    // The process that cleans up after a cancelled job is seldom the one that reported its wait.
    if (outcome === "cancelled") this.continues(job, kind);
    else this.waits({ job, kind });
    if (outcome !== "failed") return;
    this.count(kind, FAILED_PREFIX + firstLine(reason));
    const failure = { job, kind, reason: firstLine(reason), at: Date.now() };
    this.#addFailed([{ ...failure, ...(stack && { stack: stack.slice(0, MAX_STACK_CHARACTERS) }) }]);
  }

  /** Reports what a job waits for, or that it no longer waits. */
  waits(waitingJob: WaitingJob): void {
    const { job, state } = waitingJob;
    // Most jobs never wait.
    if (state === undefined && !this.#reported.has(job)) return;
    if (this.#waits.size >= MAX_STORED_JOBS && !this.#waits.has(job)) return;
    this.#waits.set(job, { ...waitingJob, ...(waitingJob.says && { says: firstLine(waitingJob.says) }) });
    this.#onNews();
    if (state === undefined) this.#reported.delete(job);
    else if (this.#reported.size < MAX_STORED_JOBS) this.#reported.add(job);
  }

  /** Reports that a job continues, which another worker may have reported as waiting. */
  continues(job: string, kind: string): void {
    if (this.#reported.size < MAX_STORED_JOBS) this.#reported.add(job);
    this.waits({ job, kind });
  }

  /** Adds what was gathered elsewhere. */
  add({ counts, failed, waits, slowest }: News): void {
    for (const [kind, name, n] of counts) this.count(kind, name, n);
    for (const { job, kind, ...more } of waits)
      more.state ? this.waits({ job, kind, ...more }) : this.continues(job, kind);
    for (const [kind, job, ms] of slowest) this.#addDuration(kind, job, ms);
    this.#addFailed(failed);
  }

  /** Returns what has happened since the last call. It names at most `maxNamed` failed and as many waiting jobs; the next call, others. */
  takeNews(maxNamed = MAX_STORED_JOBS): News {
    const waits = [...this.#waits].slice(0, maxNamed);
    for (const [job] of waits) this.#waits.delete(job);
    const news: News = {
      counts: [...this.#counts].map(([key, n]) => {
        const at = key.indexOf(" ");
        return [key.slice(0, at), key.slice(at + 1), n];
      }),
      failed: this.#failed.splice(0, maxNamed),
      waits: waits.map(([, waitingJob]) => waitingJob),
      slowest: [...this.#slowest].map(([kind, { job, ms }]) => [kind, job, ms]),
    };
    this.#counts.clear();
    this.#slowest.clear();
    return news;
  }

  /** Makes the next report. */
  takeReport({ running, most, ...worker }: WorkerState): WorkerReport {
    this.#n += 1;
    const slots = { running, waiting: this.waiting, most };
    return { ...worker, n: this.#n, slots, ...this.takeNews(MAX_NAMED_JOBS) };
  }

  /** Whether there is something that no report has named. */
  get hasNews(): boolean {
    return this.#counts.size + this.#waits.size + this.#failed.length > 0;
  }

  /** Keeps failed jobs for a report; of too many the newest. */
  #addFailed(jobs: readonly FailedJob[]): void {
    this.#failed.push(...jobs);
    this.#failed.splice(0, this.#failed.length - MAX_STORED_JOBS);
  }

  #addDuration(kind: string, job: string, ms: number): void {
    if (ms > (this.#slowest.get(kind)?.ms ?? -1)) this.#slowest.set(kind, { job, ms });
  }
}
