/** What keeps the record of a caller's jobs right: looks at their promises, and notes of what they tell. */
import { type SeenJob, type StartedJob, startedJob } from "../../core/jobs/caller/caller-record.ts";
import type { NewestEntry, ProgressFeeds } from "../../core/jobs/feed/progress-feeds.ts";
import type { Reported } from "../../core/jobs/reports.ts";
import type { ResonateClient } from "../../core/store/connection/client.ts";
import type { Channel } from "../../core/store/connection/connections.ts";
import { cleanUpId, isRoot, outputId, storedMarkId } from "../../core/store/ids.ts";
import { besideIn, MOST_OF_A_JOB, markedBytes } from "../../core/store/size.ts";
import { keepsFiles } from "../files/kept.ts";
import { EVENT_RETENTION, type EventLog } from "./event-log.ts";
import { CLEANS, type JobTable } from "./job-table.ts";
import { JOB_PROGRESS, tellingEvents, toldEvent } from "./schedules/occurrence.ts";
import type { Running } from "./watch.ts";

/** How many promises are looked at before a start is refused, and at an alarm. */
export const LOOKS = 40;

/** How many of the things that a job has told are read at once. */
const TOLD = 8;

/** The least time between two events of one job's progress, in milliseconds. */
const PROGRESS = 5_000;

interface World {
  jobs: JobTable;
  log: EventLog;
  client: ResonateClient;
  feeds: ProgressFeeds;
  env: object;
  /** How long jobs are kept after their end, in milliseconds. */
  keep: number;
  /** The caller's key; empty as long as it is not known. */
  key(): string;
  nameOf(id: string): string;
  /** Whether somebody wants to know what jobs tell. */
  isToldWanted(): boolean;
  /** Something may have been logged. */
  onNews(): void;
}

export class JobLooks {
  readonly #world: World;
  readonly #jobs: JobTable;
  readonly #log: EventLog;
  readonly #client: ResonateClient;
  readonly #looking = new Map<string, Promise<void>>();
  /** When the sizes of jobs were looked at that may have grown, in milliseconds since the epoch. */
  #sizedAt: number | undefined;
  /** How many jobs were cut off, or clean up still, since ended ones were looked at. */
  #cutOff = 0;

  constructor(world: World) {
    this.#world = world;
    this.#jobs = world.jobs;
    this.#log = world.log;
    this.#client = world.client;
  }

  /** The bytes that are stored of the caller's jobs. */
  async stored(): Promise<number> {
    if (this.#cutOff > 0) await this.#sizeEnded().catch(() => {}); // A later call looks again.
    return this.#jobs.stored;
  }

  /** Notes jobs of which workers report; `prefix` begins the ids of the caller's own. */
  async heard(prefix: string, ended: readonly Reported[], started: readonly Reported[]): Promise<void> {
    // A job of the caller's own that it did not start is one that a durable function started for it.
    const isChild = (id: string) =>
      this.#world.key() !== "" && id.startsWith(prefix) && isRoot(id) && this.#jobs.kindOf(id) === undefined;
    const jobs = [
      ...ended.filter((job) => this.#jobs.isPending(idOf(job)) || isChild(idOf(job))),
      ...started.filter((job) => isChild(idOf(job))),
    ];
    for (let i = 0; i < jobs.length; i += LOOKS) await this.lookAt(jobs.slice(i, i + LOOKS), { isChild });
  }

  /** Notes how jobs were found. `isSized`: with what their workers have marked as stored, where their ends do not say that. */
  async note(jobs: readonly SeenJob[], onlyKnown: boolean, isSized = false): Promise<void> {
    const ended = jobs.filter(({ id, state }) => state && state !== "pending" && this.#jobs.isPending(id));
    // What a job has told at last is logged before its end.
    if (this.#world.isToldWanted()) await Promise.all(ended.map(({ id }) => this.#noteTold(id)));
    for (const job of ended.filter(isCut)) {
      this.#jobs.resize(job.id, Date.now());
      this.#cutOff += 1;
    }
    const sized = isSized ? await Promise.all(jobs.map((job) => this.#withMarks(job))) : jobs;
    this.#jobs.transaction(() => {
      for (const job of sized) this.#jobs.note(job, Date.now(), onlyKnown);
    });
    this.#world.onNews();
  }

  /** A job with what its worker has marked as stored, where its end does not say that. */
  async #withMarks(job: SeenJob): Promise<SeenJob> {
    if (job.state !== "pending" && !isCut(job)) return job;
    const get = (id: string) => this.#client.call({ kind: "promise.get", data: { id } });
    const cleanUp = job.state === "rejected_canceled" ? await get(cleanUpId(job.id)) : undefined;
    const beside = cleanUp && besideIn(cleanUp.value);
    const marked = beside ?? (await markedBytes(async (n) => (await get(storedMarkId(job.id, n))) !== undefined));
    const isCleaning = cleanUp?.state === "pending";
    this.#jobs.resize(job.id, isCleaning ? Date.now() + CLEANS : undefined);
    if (isCleaning) this.#cutOff += 1;
    return { ...job, bytes: job.bytes + marked };
  }

  /** Looks at the sizes of jobs that were cut off, whose ends do not say what is stored of them. */
  async #sizeEnded(): Promise<void> {
    const ids = this.#jobs.unsized(Date.now(), LOOKS);
    this.#cutOff = 0;
    if (ids.length > 0) await this.lookAt(ids, { isSized: true });
  }

  /**
   * Looks at the sizes of ended jobs once in a while and after each so many, and at those of running ones once in a while where
   * they could hold more than is left of `most`.
   */
  async size(most: number): Promise<void> {
    const now = Date.now();
    if (this.#cutOff >= LOOKS) await this.#sizeEnded();
    // An object that begins again has looked as well.
    this.#sizedAt ??= Number(this.#jobs.get("sized") ?? 0);
    if (now - this.#sizedAt < CLEANS) return;
    this.#sizedAt = now;
    this.#jobs.set("sized", String(now));
    await this.#sizeEnded();
    const left = Math.max(0, most - this.#jobs.stored);
    const each = keepsFiles(this.#world.env) ? Number.POSITIVE_INFINITY : MOST_OF_A_JOB;
    if (!this.#jobs.hasUnsized(Math.floor(left / each) + 1)) return;
    await this.lookAt(this.#jobs.leastSeen(LOOKS), { isSized: true });
  }

  /** Logs what a job has told since, in its order. */
  async #noteTold(id: string): Promise<void> {
    const [name, kind] = [this.#world.nameOf(id), this.#jobs.kindOf(id)];
    if (kind === undefined) return;
    for (let from = this.#log.lastTold(id) + 1, isMore = true; isMore; from += TOLD) {
      const numbers = Array.from({ length: TOLD }, (_, i) => from + i);
      const get = (n: number) => this.#client.call({ kind: "promise.get", data: { id: outputId(id, n) } });
      const records = await Promise.all(numbers.map(get));
      // One that is told beside others may be written after them.
      const end = records.indexOf(undefined);
      const known = end < 0 ? records : records.slice(0, end);
      const now = Date.now();
      this.#jobs.transaction(() => {
        for (const [i, record] of known.entries())
          if (record && record.createdAt > now - EVENT_RETENTION)
            this.#log.append(toldEvent({ id, name, kind }, from + i, record), now);
      });
      if (known.length > 0) this.#world.onNews();
      isMore = known.length === TOLD;
    }
  }

  /** Jobs that should have ended, and those whose retention is over. */
  overdue(limit: number): string[] {
    const now = Date.now();
    return this.#jobs.stale(now, now - this.#world.keep, limit);
  }

  /** Looks at jobs that count in a period; starts that come meanwhile share the look. */
  async lookIn(period: string): Promise<void> {
    const looking =
      this.#looking.get(period) ??
      this.lookAt(this.#jobs.reserved(period, Date.now(), LOOKS)).finally(() => this.#looking.delete(period));
    this.#looking.set(period, looking);
    await looking;
  }

  async listen(id: string, { address }: Channel): Promise<number | undefined> {
    const record = await this.#client.call({ kind: "promise.register_listener", data: { awaited: id, address } });
    if (record && record.state !== "pending") await this.note([startedJob(record, this.#world.key())], true);
    return record?.timeoutAt;
  }

  /** Notes what is new in a job's progress feed, and has the next entry pushed. */
  async readFeed(job: Running, channel: Channel): Promise<void> {
    for (let isWritten = true; isWritten; ) {
      const newest = await this.#world.feeds.newest(job.id);
      await this.noteFeed(job.id, newest);
      isWritten = await this.#world.feeds.listenToEntry(job, newest.n + 1, channel);
    }
  }

  async noteFeed(id: string, newest: NewestEntry): Promise<void> {
    const [name, kind] = [this.#world.nameOf(id), this.#jobs.kindOf(id)];
    if (kind === undefined) return;
    const now = Date.now();
    const isNew = this.#jobs.transaction(() =>
      tellingEvents({ id, name, kind }, newest)
        .filter((event) => event.name !== JOB_PROGRESS || now - (this.#log.lastOf(id, JOB_PROGRESS) ?? 0) >= PROGRESS)
        .map((event) => this.#log.append(event, now)),
    );
    if (isNew.includes(true)) this.#world.onNews();
    const { emitted = 0, events = 0 } = newest.entry ?? {};
    if (emitted + events > this.#log.lastTold(id) && this.#world.isToldWanted()) await this.#noteTold(id);
  }

  /**
   * Notes how jobs are. `isChild`: of those that are not in the table, which were started for the caller. `isSized`: with what is
   * marked as stored of those that have not ended.
   */
  async lookAt(
    jobs: readonly Reported[],
    { isChild = () => false, isSized = false }: { isChild?: (id: string) => boolean; isSized?: boolean } = {},
  ): Promise<void> {
    const look = (job: Reported) =>
      typeof job === "string"
        ? this.#client.call({ kind: "promise.get", data: { id: job } })
        : this.#client.opened(job);
    const found = await Promise.all(jobs.map(look));
    const ids = jobs.map(idOf);
    const key = this.#world.key();
    const seen = ids.map((id, i): SeenJob => {
      const record = found[i];
      return record ? startedJob(record, key) : { id };
    });
    const children = seen.filter(({ id, state }) => state && isChild(id));
    this.#jobs.transaction(() => {
      for (const child of children) this.#jobs.noteChild(child as StartedJob, Date.now());
    });
    await this.note(seen, true, isSized);
  }
}

/** Whether a job was cut off, so that its end does not say what is stored of it. */
const isCut = (job: SeenJob): job is StartedJob =>
  (job.state === "rejected_canceled" || job.state === "rejected_timedout") && job.bytes > 0;

const idOf = (job: Reported): string => (typeof job === "string" ? job : job.id);
