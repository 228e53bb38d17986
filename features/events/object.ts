/** The events of a caller: their log in the caller's object, and the method that reads it. */
import type { Caller, Job } from "../../core/author/index.ts";
import {
  type EventFilter,
  type EventQuery,
  type EventSource,
  INTEREST_MS,
  isEmittedByJob,
  JOB_ENDED,
  type JobEvent,
  type JobFilter,
  type ListenerView,
  type LogPage,
  type ObjectPart,
  type ObjectRecord,
  type Occurrence,
  type PartTables,
  type ProgressFeeds,
  ReadRoom,
  type StartedJob,
} from "../../core/jobs/index.ts";
import type { Channel, ObjectSql, ResonateClient } from "../../core/resonate/index.ts";
import { EVENT_RETENTION_MS, EventLog, eventTables } from "./event-log.ts";
import { JobOutputs, type JobPromise } from "./job-outputs.ts";
import { Listeners } from "./listeners.ts";
import { endedEvent, occurrenceOf } from "./occurrence.ts";

/** The pause before old events are dropped again: while there are more, and otherwise; in milliseconds. */
const PRUNE_PAUSE_MS = 1_000;
const PRUNE_INTERVAL_MS = 86_400_000;

/** Where the object's storage has the time of the next removal of old events. */
const PRUNE_AT = "events_pruned_at";

export interface EventPage {
  events: Occurrence[];
  /** The positions from which and up to which the log was read. */
  from: string;
  cursor: string;
  truncated: boolean;
  hasMore: boolean;
  /** Whether jobs are under way. */
  isBusy: boolean;
}

/** The remote methods of the events in a caller's object. */
export interface EventMethods {
  /** Reads events, and waits up to `wait` milliseconds for the first. */
  readEvents(caller: Caller, query: EventQuery & { wait?: number | undefined }): Promise<EventPage>;
}

type Reader = Pick<ResonateClient, "call">;

/** Reads promises, and measures them. */
class ReadMeter implements Reader {
  readonly #client: Reader;
  /** Of the parameters and values as they are stored. */
  characters = 0;

  constructor(client: Reader) {
    this.#client = client;
  }

  async call(...of: Parameters<Reader["call"]>): ReturnType<Reader["call"]> {
    const record = await this.#client.call(...of);
    this.characters += (record?.param.data?.length ?? 0) + (record?.value.data?.length ?? 0);
    return record;
  }
}

interface EventPartOptions {
  sql: ObjectSql;
  record: ObjectRecord;
  client: Reader;
  feeds: ProgressFeeds;
  namespace: string;
  /** The deployment's definitions. */
  jobs: readonly Job[];
  /** Has the ends of jobs noticed until a time; `andFeeds`: also what they report. */
  follow(until: number, andFeeds: boolean): void;
  /** The types of events that somebody is subscribed to. */
  subscribedTypes(): readonly string[];
  /** The address of a job's page; undefined without pages. */
  pageOf(name: string, caller: Caller): Promise<string | undefined>;
  /** Called when the log may have new events. */
  onNews(): void;
}

export class EventPart implements ObjectPart, EventSource {
  readonly name = "events";
  readonly tables: PartTables;
  readonly log: EventLog;
  readonly #options: EventPartOptions;
  readonly #outputs: JobOutputs;
  readonly #listeners = new Listeners();
  /** Until when somebody who polls or streams wants the outputs of jobs, in milliseconds since the epoch. */
  #outputsWantedUntil = 0;
  /** Wake the calls that wait for events. */
  readonly #waiting = new Set<() => void>();
  /** Whether there are more old events than have been dropped. */
  #isPruning = false;

  constructor(options: EventPartOptions) {
    const { sql, client, feeds, record } = options;
    this.#options = options;
    this.tables = eventTables(sql);
    this.log = new EventLog(sql);
    this.#outputs = new JobOutputs({
      log: this.log,
      client,
      feeds,
      jobs: record.jobs,
      nameOf: (id) => record.nameOf(id),
      areOutputsWanted: () => this.#areOutputsWanted(),
      onNews: () => this.afterNote(),
    });
  }

  readonly methods = {
    readEvents: (...args: Parameters<EventMethods["readEvents"]>) => this.#read(...args),
  };

  load(): void {
    this.log.open();
  }

  nextAt(): number {
    return this.#isPruning ? Number(this.#options.record.get(PRUNE_AT)) : Number.POSITIVE_INFINITY;
  }

  /** Drops old events. */
  run(now: number): void {
    const { record } = this.#options;
    if (!record.isBegun || now < Number(record.get(PRUNE_AT) ?? 0)) return;
    this.#isPruning = this.log.prune(now);
    record.set(PRUNE_AT, String(now + (this.#isPruning ? PRUNE_PAUSE_MS : PRUNE_INTERVAL_MS)));
  }

  /** Logs the last outputs of jobs before their ends. */
  async beforeEnd(jobs: readonly StartedJob[]): Promise<void> {
    if (!this.#areOutputsWanted()) return;
    await Promise.all(jobs.map(({ id, startedAt }) => this.#outputs.noteOutputs(id, startedAt)));
  }

  onEnd(job: StartedJob): void {
    const now = Date.now();
    if ((job.settledAt ?? now) < now - EVENT_RETENTION_MS) return;
    this.log.append(endedEvent(job, this.#options.record.nameOf(job.id)), now);
  }

  afterNote(): void {
    for (const wake of this.#waiting) wake();
    this.#options.onNews();
  }

  /** A filter in the log's terms. A job name stands for two promises: the caller's own job, and a shared one. */
  jobFilter({ jobNames, ...rest }: EventFilter): JobFilter {
    const { namespace, record } = this.#options;
    return { jobs: jobNames?.flatMap((name) => [namespace + record.key + name, namespace + name]), ...rest };
  }

  occurrence(event: JobEvent, caller: Caller, client: Reader = this.#options.client): Promise<Occurrence> {
    const { record, feeds, namespace, jobs, pageOf } = this.#options;
    return occurrenceOf(event, {
      labels: record.jobs.labelsOf(event.job),
      isLast: this.log.isLast(event),
      client,
      feeds,
      namespace,
      key: caller.key,
      jobs,
      pageOf: (name) => pageOf(name, caller),
    });
  }

  /** Logs what is new in a job's progress feed, and has the next entry pushed. */
  readFeed(job: JobPromise, channel: Channel): Promise<void> {
    return this.#outputs.readFeed(job, channel);
  }

  noteFeed(job: JobPromise): Promise<number> {
    return this.#outputs.noteFeed(job);
  }

  /** Who has lately polled or streamed events. */
  listeners(): ListenerView[] {
    return this.#listeners.list(Date.now());
  }

  /** Whether a filter matches one of the jobs that a name stands for. */
  matches(filter: EventFilter, jobName: string): boolean {
    const { jobs: ids = [] } = this.jobFilter({ jobNames: [jobName] });
    const wanted = this.jobFilter(filter);
    return ids.some((id) => this.log.isAmong(id, wanted));
  }

  async #read(...[caller, { filter, wait = 0, ...query }]: Parameters<EventMethods["readEvents"]>): Promise<EventPage> {
    const { record, follow } = this.#options;
    await record.begin(caller.key);
    const until = Date.now() + wait;
    follow(until + INTEREST_MS, query.name !== JOB_ENDED);
    this.#listeners.note({ name: query.name, filter }, until + INTEREST_MS);
    if (isEmittedByJob(query.name)) this.#outputsWantedUntil = until + INTEREST_MS;
    const wanted = { ...query, ...this.jobFilter(filter) };
    let page: LogPage = this.log.read(wanted, Date.now());
    while (page.events.length === 0 && !page.truncated && !page.hasMore && Date.now() < until) {
      await this.#news(until - Date.now());
      page = this.log.read({ ...wanted, cursor: page.cursor }, Date.now());
    }
    const read = async (event: LogPage["events"][number]) => {
      const meter = new ReadMeter(this.#options.client);
      const occurrence = await this.occurrence(event, caller, meter);
      return { event: { ...occurrence, cursor: event.cursor }, characters: meter.characters };
    };
    const found = await new ReadRoom().read(page.events, read, ({ characters }) => characters);
    const events = found.map(({ event }) => event);
    const isBusy = record.jobs.pending(1).length > 0;
    if (events.length === page.events.length) return { ...page, events, isBusy };
    // The jobs are too large to read more of them at once.
    return { ...page, events, cursor: events.at(-1)?.cursor ?? page.from, hasMore: true, isBusy };
  }

  /** Waits for possible new events, at most `ms` milliseconds. */
  async #news(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    this.#waiting.add(resolve);
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(resolve);
  }

  #areOutputsWanted(): boolean {
    return this.#outputsWantedUntil > Date.now() || this.#options.subscribedTypes().some(isEmittedByJob);
  }
}
