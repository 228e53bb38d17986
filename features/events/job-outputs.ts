/** Logs what jobs produce while they run: their questions and progress, their partial results, and events of their authors. */
import { JOB_PROGRESS, type ProgressFeeds, type RecordedJobs } from "../../core/jobs/index.ts";
import { type Channel, getOf, outputId, type PromiseRecord, type ResonateClient } from "../../core/resonate/index.ts";
import { EVENT_RETENTION_MS, type EventLog } from "./event-log.ts";
import { feedEvents, outputEvent } from "./occurrence.ts";

/** How many outputs of a job (partial results and events of its author) are read at once. */
const OUTPUTS_READ_AT_ONCE = 8;

/** The least time between two progress events of one job, in milliseconds. */
const MIN_PROGRESS_INTERVAL_MS = 5_000;

/** The promise of a job. */
export type JobPromise = Pick<PromiseRecord, "id" | "createdAt" | "timeoutAt">;

interface JobOutputOptions {
  log: EventLog;
  client: Pick<ResonateClient, "call">;
  feeds: ProgressFeeds;
  jobs: Pick<RecordedJobs, "kindOf" | "transaction">;
  nameOf(id: string): string;
  /** Whether somebody wants the outputs of jobs. */
  areOutputsWanted(): boolean;
  /** Called when the log has new events. */
  onNews(): void;
}

export class JobOutputs {
  readonly #options: JobOutputOptions;

  constructor(options: JobOutputOptions) {
    this.#options = options;
  }

  /** Logs the new outputs of a job, in their order. `startedAt`: its start, if the promise says it. */
  async noteOutputs(id: string, startedAt?: number): Promise<void> {
    const { log, client, jobs, nameOf, onNews } = this.#options;
    const [name, kind] = [nameOf(id), jobs.kindOf(id)];
    if (kind === undefined) return;
    for (let from = log.lastOutput(id, startedAt) + 1, isMore = true; isMore; from += OUTPUTS_READ_AT_ONCE) {
      const numbers = Array.from({ length: OUTPUTS_READ_AT_ONCE }, (_, i) => from + i);
      const records = await Promise.all(numbers.map((n) => client.call(getOf(outputId(id, n)))));
      // Concurrent outputs may be written out of order: those after a missing one wait for it.
      const end = records.indexOf(undefined);
      const known = end < 0 ? records : records.slice(0, end);
      const now = Date.now();
      jobs.transaction(() => {
        for (const [i, record] of known.entries()) {
          const isRecent = record && record.createdAt > now - EVENT_RETENTION_MS;
          const event = isRecent && outputEvent({ id, name, kind }, from + i, record);
          if (event) log.append(event, now);
        }
      });
      if (known.length > 0) onNews();
      isMore = known.length === OUTPUTS_READ_AT_ONCE;
    }
  }

  /** Logs what is new in a job's progress feed, and has the next entry pushed. */
  async readFeed(job: JobPromise, channel: Channel): Promise<void> {
    for (let read = -1; ;) {
      const n = await this.noteFeed(job);
      // Beyond the deadline of its job an entry counts as settled, but is none.
      if (n === read) return;
      read = n;
      if (!(await this.#options.feeds.listenToEntry(job, read + 1, channel))) return;
    }
  }

  /** Logs what is new in a job's progress feed. Returns the number of its newest entry. */
  async noteFeed(job: JobPromise): Promise<number> {
    const { log, feeds, jobs, nameOf, areOutputsWanted, onNews } = this.#options;
    const { id } = job;
    const newest = await feeds.newestFrom(job, log.lastEntry(id));
    const [name, kind] = [nameOf(id), jobs.kindOf(id)];
    if (kind === undefined) return newest.n;
    const now = Date.now();
    const isTooSoon = () => now - (log.lastOf(id, JOB_PROGRESS) ?? 0) < MIN_PROGRESS_INTERVAL_MS;
    const areNew = jobs.transaction(() =>
      feedEvents({ id, name, kind }, newest)
        .filter((event) => event.name !== JOB_PROGRESS || !isTooSoon())
        .map((event) => log.append(event, now)),
    );
    if (areNew.includes(true)) onNews();
    const { emitted = 0, events = 0 } = newest.entry ?? {};
    if (emitted + events > log.lastOutput(id) && areOutputsWanted()) await this.noteOutputs(id);
    return newest.n;
  }
}
