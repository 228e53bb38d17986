/** Keeps the record of a caller's jobs correct: looks at their promises, and logs their progress and outputs. */

import { type SeenJob, type StartedJob, startedJob } from "../../core/jobs/caller-record.ts";
import type { ProgressFeeds } from "../../core/jobs/feed/progress-feeds.ts";
import type { Reported } from "../../core/jobs/reports.ts";
import { getOf } from "../../core/resonate/codec.ts";
import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import type { Channel } from "../../core/resonate/connection/connections.ts";
import { unreadIn } from "../../core/resonate/connection/failures.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { cleanUpId, isRoot, outputId, storedMarkId } from "../../core/resonate/ids.ts";
import { besideIn, MOST_OF_A_JOB, markedBytes } from "../../core/resonate/size.ts";
import { EVENT_RETENTION, type EventLog } from "../../features/events/event-log.ts";
import { keepsFiles } from "../../features/files/kept.ts";
import { JOB_PROGRESS, tellingEvents, toldEvent } from "../../features/schedules/occurrence.ts";
import { CLEANS, type JobTable } from "./job-table.ts";

/** How many promises are looked at before a start is refused, and in an alarm. */
export const LOOKS = 40;

/** How many outputs of a job (partial results and events of its author) are read at once. */
const TOLD = 8;

/** The least time between two progress events of one job, in milliseconds. */
const PROGRESS = 5_000;

/** The promise of a job. */
export type Running = Pick<PromiseRecord, "id" | "createdAt" | "timeoutAt">;

interface World {
  jobs: JobTable;
  log: EventLog;
  client: ResonateClient;
  feeds: ProgressFeeds;
  env: object;
  /** How long jobs are kept after their end, in milliseconds. */
  keep: number;
  /** The caller's key; empty while it is not known. */
  key(): string;
  nameOf(id: string): string;
  /** Whether somebody wants the outputs of jobs. */
  isToldWanted(): boolean;
  /** Called when the log may have new events. */
  onNews(): void;
}

export class JobLooks {
  readonly #world: World;
  readonly #jobs: JobTable;
  readonly #log: EventLog;
  readonly #client: ResonateClient;
  readonly #looking = new Map<string, Promise<unknown>>();
  /** When jobs that may have grown were last looked at for their sizes, in milliseconds since the epoch. */
  #sizedAt: number | undefined;
  /** How many jobs were cut off, or found still cleaning up, since the last look at the sizes of ended jobs. */
  #cutOff = 0;

  constructor(world: World) {
    this.#world = world;
    this.#jobs = world.jobs;
    this.#log = world.log;
    this.#client = world.client;
  }

  /** The stored bytes of the caller's jobs. */
  async stored(): Promise<number> {
    if (this.#cutOff > 0) await this.#sizeEnded().catch(() => {}); // A later call looks again.
    return this.#jobs.stored;
  }

  /** Records jobs that workers report. The ids of the caller's own jobs begin with `prefix`. */
  async heard(prefix: string, ended: readonly Reported[], started: readonly Reported[]): Promise<void> {
    // If one of the caller's own jobs is not in the table, a durable function started it.
    const isChild = (id: string) =>
      this.#world.key() !== "" && id.startsWith(prefix) && isRoot(id) && this.#jobs.kindOf(id) === undefined;
    const jobs = [
      ...ended.filter((job) => this.#jobs.isPending(idOf(job)) || isChild(idOf(job))),
      ...started.filter((job) => isChild(idOf(job))),
    ];
    for (let i = 0; i < jobs.length; i += LOOKS) await this.lookAt(jobs.slice(i, i + LOOKS), { isChild });
  }

  /** Records the observed state of jobs. `isSized`: includes the bytes that workers have marked, as in {@link #withMarks}. */
  async note(jobs: readonly SeenJob[], onlyKnown: boolean, isSized = false): Promise<void> {
    const ended = jobs.filter(
      (job): job is StartedJob => job.state !== undefined && job.state !== "pending" && this.#jobs.isPending(job.id),
    );
    // The last outputs of a job are logged before its end.
    if (this.#world.isToldWanted()) await Promise.all(ended.map(({ id, startedAt }) => this.#noteTold(id, startedAt)));
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

  /** Adds the bytes that its worker has marked to a job that runs or was cut off. */
  async #withMarks(job: SeenJob): Promise<SeenJob> {
    if (job.state !== "pending" && !isCut(job)) return job;
    const get = (id: string) => this.#client.call(getOf(id));
    const cleanUp = job.state === "rejected_canceled" ? await get(cleanUpId(job.id)) : undefined;
    const beside = cleanUp && besideIn(cleanUp.value);
    const marked = beside ?? (await markedBytes(async (n) => (await get(storedMarkId(job.id, n))) !== undefined));
    const isCleaning = cleanUp?.state === "pending";
    this.#jobs.resize(job.id, isCleaning ? Date.now() + CLEANS : undefined);
    if (isCleaning) this.#cutOff += 1;
    return { ...job, bytes: job.bytes + marked };
  }

  /** Looks at the sizes of jobs that were cut off, as their ends do not state them. */
  async #sizeEnded(): Promise<void> {
    const ids = this.#jobs.unsized(Date.now(), LOOKS);
    this.#cutOff = 0;
    if (ids.length > 0) await this.lookAt(ids, { isSized: true });
  }

  /**
   * Looks at the sizes of ended jobs every {@link CLEANS} and after {@link LOOKS} that were cut off; every {@link CLEANS} also at
   * those of running jobs, where these could hold more than is left of `most` bytes.
   */
  async size(most: number): Promise<void> {
    const now = Date.now();
    if (this.#cutOff >= LOOKS) await this.#sizeEnded();
    // The time of the last look outlasts a restart.
    this.#sizedAt ??= Number(this.#jobs.get("sized") ?? 0);
    if (now - this.#sizedAt < CLEANS) return;
    this.#sizedAt = now;
    this.#jobs.set("sized", String(now));
    await this.#sizeEnded();
    const left = Math.max(0, most - this.#jobs.stored);
    const each = keepsFiles(this.#world.env) ? Number.POSITIVE_INFINITY : MOST_OF_A_JOB;
    if (!this.#jobs.hasUnsized(Math.floor(left / each) + 1)) return;
    await this.lookAt(this.#jobs.leastSeen(now, LOOKS), { isSized: true });
  }

  /** Logs the new outputs of a job, in their order. `startedAt`: its start, where the promise says it. */
  async #noteTold(id: string, startedAt?: number): Promise<void> {
    const [name, kind] = [this.#world.nameOf(id), this.#jobs.kindOf(id)];
    if (kind === undefined) return;
    for (let from = this.#log.lastTold(id, startedAt) + 1, isMore = true; isMore; from += TOLD) {
      const numbers = Array.from({ length: TOLD }, (_, i) => from + i);
      const get = (n: number) => this.#client.call(getOf(outputId(id, n)));
      const records = await Promise.all(numbers.map(get));
      // Concurrent outputs may be written out of order: those after a missing one wait for it.
      const end = records.indexOf(undefined);
      const known = end < 0 ? records : records.slice(0, end);
      const now = Date.now();
      this.#jobs.transaction(() => {
        for (const [i, record] of known.entries()) {
          const isRecent = record && record.createdAt > now - EVENT_RETENTION;
          const event = isRecent && toldEvent({ id, name, kind }, from + i, record);
          if (event) this.#log.append(event, now);
        }
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

  /** Looks at jobs that count in a period. Starts in the meantime share the look. */
  async lookIn(period: string): Promise<void> {
    const looking =
      this.#looking.get(period) ??
      this.lookAt(this.#jobs.reserved(period, Date.now(), LOOKS)).finally(() => this.#looking.delete(period));
    this.#looking.set(period, looking);
    await looking;
  }

  /** Has the end of a job pushed, and records one that has ended. Returns its promise, if it has one yet. */
  async listen(id: string, { address }: Channel): Promise<Running | undefined> {
    const record = await this.#client.call({ kind: "promise.register_listener", data: { awaited: id, address } });
    // A look removes a job that was never created.
    if (!record) await this.lookAt([id]);
    else if (record.state !== "pending") await this.noteRecord(record);
    return record;
  }

  noteRecord(record: PromiseRecord): Promise<void> {
    return this.note([startedJob(record, this.#world.key())], true);
  }

  /** Logs what is new in a job's progress feed, and has the next entry pushed. */
  async readFeed(job: Running, channel: Channel): Promise<void> {
    for (let read = -1; ; ) {
      const n = await this.noteFeed(job);
      // Beyond the deadline of its job an entry counts as settled, but is none.
      if (n === read) return;
      read = n;
      if (!(await this.#world.feeds.listenToEntry(job, read + 1, channel))) return;
    }
  }

  /** Logs what is new in a job's progress feed. Returns the number of its newest entry. */
  async noteFeed(job: Running): Promise<number> {
    const { id } = job;
    const newest = await this.#world.feeds.newestFrom(job, this.#log.lastEntry(id));
    const [name, kind] = [this.#world.nameOf(id), this.#jobs.kindOf(id)];
    if (kind === undefined) return newest.n;
    const now = Date.now();
    const isNew = this.#jobs.transaction(() =>
      tellingEvents({ id, name, kind }, newest)
        .filter((event) => event.name !== JOB_PROGRESS || now - (this.#log.lastOf(id, JOB_PROGRESS) ?? 0) >= PROGRESS)
        .map((event) => this.#log.append(event, now)),
    );
    if (isNew.includes(true)) this.#world.onNews();
    const { emitted = 0, events = 0 } = newest.entry ?? {};
    if (emitted + events > this.#log.lastTold(id) && this.#world.isToldWanted()) await this.#noteTold(id);
    return newest.n;
  }

  /**
   * Reads the state of jobs and records it. `isChild`: whether to add a job that is not in the table, as one that a durable
   * function started for the caller. `isSized`: as in {@link note}. Resolves with the promises, in the order of the jobs.
   */
  async lookAt(
    jobs: readonly Reported[],
    { isChild = () => false, isSized = false }: { isChild?: (id: string) => boolean; isSized?: boolean } = {},
  ): Promise<(PromiseRecord | undefined)[]> {
    const look = (job: Reported) =>
      typeof job === "string" ? this.#client.call(getOf(job)) : this.#client.opened(job);
    // Of a promise that cannot be decrypted the state is known: it must not keep others from being looked at.
    const unread = (error: unknown) => unreadIn(error) ?? Promise.reject(error);
    const found = await Promise.all(jobs.map((job) => look(job).catch(unread)));
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
    return found;
  }
}

/** Whether a job was cut off, so that its end does not state its stored bytes. */
const isCut = (job: SeenJob): job is StartedJob =>
  (job.state === "rejected_canceled" || job.state === "rejected_timedout") && job.bytes > 0;

const idOf = (job: Reported): string => (typeof job === "string" ? job : job.id);
