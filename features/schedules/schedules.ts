/**
 * Fires the schedules of a caller. Their promises decide which schedules exist. The object's storage holds when each is due
 * next, and is made again if it is lost. A firing starts a job whose name holds the time, so a repeated firing is one job.
 */

import { hashed, type Job, NotStarted } from "../../core/author/index.ts";
import {
  FeedEntry,
  type ObjectRecord,
  PausedJobs,
  type ProgressFeeds,
  type RemoteStore,
  type ScheduleView,
  startJob,
} from "../../core/jobs/index.ts";
import {
  decodeValue,
  escapeId,
  getOf,
  type ObjectSql,
  orIfUndecryptable,
  type PromiseRecord,
  type ResonateClient,
  ResonateRefused,
  ResonateUnavailable,
  resolveOf,
  type SqlValue,
  splitGeneration,
  undecryptableIn,
} from "../../core/resonate/index.ts";
import { callerJobs, check, type Tool, type ToolSchedule } from "../../core/tools/index.ts";
import type { EdgeLog } from "../../functions/http/log.ts";
import { whenOf } from "./form.ts";
import { Schedule, schedule } from "./schedule.ts";
import { lastBetween, nextAfter, problemIn, stamp } from "./times.ts";

/** How late a firing may be before it counts as missed, in milliseconds. */
const MAX_LATENESS_MS = 5 * 60_000;

/** The pause after an outage, and before a queued firing is tried again, in milliseconds. */
const RETRY_MS = 10_000;

/** The pause after another failure, in milliseconds. It may last until a deployment mends it, which then misses no firing. */
const FAILURE_PAUSE_MS = MAX_LATENESS_MS - 60_000;

/** How often a firing that waits for the end of a pause is tried, in milliseconds. A pause may last for days. */
const PAUSED_RETRY_MS = 60_000;

/** How many schedules fire at once, and how many of its last firings a schedule reports. */
const MAX_FIRED_AT_ONCE = 10;
const MAX_REPORTED_FIRINGS = 5;

/**
 * The least time between two entries of a schedule's feed: a share of its age, up to so many milliseconds. Entries are
 * never removed, so a feed must not grow fast. It is less than a day, as nightly firings are not exactly a day apart, and one day a
 * year has 23 hours.
 */
const ENTRY_GAP_SHARE = 0.1;
const MAX_ENTRY_GAP_MS = 72_000_000;

/** How many schedules a caller sees at once. */
const MAX_SHOWN = 100;

interface Row {
  id: string;
  /** 0: not known yet. */
  next_at: number;
  /** The time up to which firings have been decided on. */
  after: number;
  /** The promise id of the last firing's job. */
  running: string | null;
  /** The time of a firing that waits for that job to end. */
  queued: number | null;
  /** The last firings: a JSON array of job names, and of reasons why none was started. */
  firings: string;
}

export interface ScheduleOptions {
  sql: ObjectSql;
  client: ResonateClient;
  feeds: ProgressFeeds;
  record: Pick<ObjectRecord, "refresh" | "noteRecord" | "nameOf" | "jobs">;
  namespace: string;
  tools: readonly Tool[];
  /** The caller's store; `isOwn`: for the deployment's own work, which no quota counts. */
  store(isOwn: boolean): RemoteStore;
  log: Pick<EdgeLog, "error" | "describe">;
  /** Why the caller is not admitted, as what follows "the caller"; undefined if it is. */
  refusal(): Promise<string | undefined>;
}

/** When a schedule was last decided on, the present, and its next firing; in milliseconds since the epoch. */
interface FiringTimes {
  after: number;
  now: number;
  next: number | undefined;
}

interface Decision {
  firing: number | undefined;
  queued: number | null;
  isPaused: boolean;
  firings: string[];
}

export class Schedules {
  readonly #options: ScheduleOptions;
  readonly #paused: PausedJobs;

  constructor(options: ScheduleOptions) {
    this.#options = options;
    this.#paused = new PausedJobs(options.client, options.namespace);
  }

  /**
   * Makes the schedules of the deployment's definitions, and ends those that are no longer defined. A name holds a hash of its
   * schedule: a changed schedule has another name, and concurrent callers make one schedule.
   */
  async deploy(): Promise<void> {
    const store = this.#options.store(true);
    const wanted = new Set<string>();
    for (const tool of this.#options.tools) {
      if (!tool.schedule) continue;
      const refuse = (reason: string) => this.#options.log.error("schedule not made", { tool: tool.name, reason });
      const spec = await specOf(tool.name, tool.schedule);
      const problem = problemIn(spec.when, Date.now(), true);
      if (problem !== undefined) {
        refuse(problem);
        continue;
      }
      wanted.add(await schedule.name(spec));
      await startJob(store, schedule as Job, spec, Date.now()).catch((error) => {
        // The others are made all the same.
        if (!(error instanceof NotStarted) && !undecryptableIn(error)) throw error;
        refuse(error.message);
      });
    }
    for (const { id } of this.#options.sql.all("SELECT id FROM schedules")) {
      const name = this.#options.record.nameOf(String(id));
      if (isOfDefinition(name) && !wanted.has(splitGeneration(name).base))
        await store.cancel(name).catch(orIfUndecryptable(undefined));
    }
  }

  /** When the next schedule is due, in milliseconds since the epoch; infinite without one. */
  nextAt(): number {
    const [row] = this.#options.sql.all("SELECT min(next_at) AS at FROM schedules");
    return Number(row?.at ?? Infinity);
  }

  /** The schedules as their caller sees them, the next to fire first. */
  list(): ScheduleView[] {
    const { namespace, record } = this.#options;
    return this.#rows("1 ORDER BY next_at, id LIMIT ?", MAX_SHOWN).map(({ id, next_at, firings }) => {
      const job_name = record.nameOf(id);
      const own = id.slice(0, id.length - job_name.length);
      const isJob = (name: string) => record.jobs.isFired([own + name, namespace + name]);
      const isKnown = next_at > 0 && next_at < Number.MAX_SAFE_INTEGER;
      return {
        job_name,
        next_at: isKnown ? new Date(next_at).toISOString() : undefined,
        last: (JSON.parse(firings) as string[]).map((text) => ({ text, isJob: isJob(text) })),
        isOfDefinition: isOfDefinition(job_name),
      };
    });
  }

  /** How many schedules there are, up to a limit. */
  count(limit: number): number {
    return this.#options.sql.all("SELECT 1 FROM schedules LIMIT ?", limit).length;
  }

  /** Fires the schedules that are due. */
  async run(): Promise<void> {
    const due = this.#rows("next_at <= ? ORDER BY next_at LIMIT ?", Date.now(), MAX_FIRED_AT_ONCE);
    await Promise.all(
      due.map((row) =>
        this.#fire(row).catch((error) => {
          // The others must fire all the same.
          const { sql, log } = this.#options;
          const isOutage = error instanceof ResonateUnavailable && !(error instanceof ResonateRefused);
          if (!isOutage) log.error("schedule not fired", { job: row.id, reason: log.describe(error) });
          const again = Date.now() + (isOutage ? RETRY_MS : FAILURE_PAUSE_MS);
          sql.all("UPDATE schedules SET next_at = ? WHERE id = ?", again, row.id);
        }),
      ),
    );
  }

  async #fire(row: Row): Promise<void> {
    const { client, record: jobs } = this.#options;
    const record = await client.call(getOf(row.id));
    // An edge may be about to create the promise. If it never does, the refresh removes the schedule.
    if (!record) {
      await jobs.refresh([row.id]);
      return this.#put({ ...row, next_at: Date.now() + RETRY_MS });
    }
    if (record.state !== "pending") return jobs.noteRecord(record);
    const param = decodeValue(record.param) as { args?: unknown[] } | undefined;
    const { data: spec } = Schedule.safeParse(param?.args?.[0]);
    if (!spec) return this.#put({ ...row, next_at: Number.MAX_SAFE_INTEGER });
    const now = Date.now();
    const next = nextAfter(spec.when, now);
    const times = { after: row.after || record.createdAt, now, next };
    const { firing, queued, isPaused, firings } = await this.#decide(row, spec, times);
    let { running } = row;
    if (firing !== undefined) {
      const { base } = splitGeneration(jobs.nameOf(row.id));
      const started = await this.#start(spec, firing, isOfDefinition(base));
      if (started.id !== undefined) jobs.jobs.noteFiring(started.id, base);
      running = started.id ?? running;
      firings.unshift(started.text);
    }
    const isOver = next === undefined && queued === null;
    // One that is over is looked at again, in case this process dies before it has ended it.
    const again = queued !== null || isOver ? now + (isPaused ? PAUSED_RETRY_MS : RETRY_MS) : Number.MAX_SAFE_INTEGER;
    const next_at = Math.min(next ?? Number.MAX_SAFE_INTEGER, again);
    const reported = firings.slice(0, MAX_REPORTED_FIRINGS);
    await this.#report(record, next, reported);
    this.#put({ ...row, next_at, after: now, running, queued, firings: JSON.stringify(reported) });
    const settled = isOver && (await client.call(resolveOf(record.id, { firings: reported })));
    if (settled) await jobs.noteRecord(settled);
  }

  /** Decides whether a schedule fires now (`firing`: for which time) or later (`queued`), and adds to its last `firings` why not. */
  async #decide(row: Row, spec: Schedule, { after, now, next }: FiringTimes): Promise<Decision> {
    const { running, queued } = row;
    const last = lastBetween(spec.when, after, now);
    const isMissed = last !== undefined && now - last > MAX_LATENESS_MS && spec.missed === "skip";
    const firings: string[] = JSON.parse(row.firings);
    let firing = queued ?? undefined;
    const mayFire = last !== undefined || firing !== undefined;
    const isPaused = mayFire && (await this.#paused.find(schedule.kind)) !== undefined;
    // A firing within a pause counts as missed, but the only one of a schedule waits.
    const isLeftOut = isPaused ? spec.missed === "skip" && next !== undefined : isMissed;
    const isOwn = isOfDefinition(splitGeneration(this.#options.record.nameOf(row.id)).base);
    const refusal = mayFire && !isOwn ? await this.#options.refusal() : undefined;
    if (last !== undefined) {
      if (isLeftOut) firings.unshift(`${stamp(last)} ${isPaused ? "paused" : "missed"}`);
      else if (spec.overlap !== "skip" || !(await this.#isRunning(running))) firing = last;
      else firings.unshift(`${stamp(last)} skipped, as ${this.#options.record.nameOf(running ?? "")} still runs`);
    }
    if (queued !== null && firing !== queued) firings.unshift(`${stamp(queued)} skipped, as a later one is due`);
    // A queued firing is given up too, so that the end of the block starts nothing at once.
    if (firing !== undefined && refusal !== undefined) {
      firings.unshift(notStarted(firing, `the caller ${refusal}`));
      firing = undefined;
    }
    const mustWait = async () => isPaused || (spec.overlap === "queue" && (await this.#isRunning(running)));
    if (firing !== undefined && (await mustWait())) return { firing: undefined, queued: firing, isPaused, firings };
    return { firing, queued: null, isPaused, firings };
  }

  async #start(
    { tool: name, arguments: input }: Schedule,
    at: number,
    isOwn: boolean,
  ): Promise<{ id?: string; text: string }> {
    const refused = (reason: string) => ({ text: notStarted(at, reason) });
    const tool = this.#options.tools.find((one) => one.name === name);
    if (!tool?.job || !tool.argsOf) return refused(`there is no tool ${name} any more`);
    const store = this.#options.store(isOwn);
    try {
      const checked = await check(tool.input, input);
      if ("problems" in checked) return refused(checked.problems.join("; "));
      const args = await tool.argsOf(checked.args, contextOf(store, at));
      const job = tool.job as Job;
      const promise = await store.create(job, `${await job.name(args)}@${stamp(at)}`, args, Date.now());
      return { id: promise.id, text: promise.name };
    } catch (error) {
      if (error instanceof ResonateUnavailable) throw error;
      const isForCaller = error instanceof NotStarted || (error instanceof Error && error.name === "ToolError");
      return refused(isForCaller ? error.message : "an error inside");
    }
  }

  async #isRunning(id: string | null): Promise<boolean> {
    if (id === null) return false;
    const record = await this.#options.client.call(getOf(id));
    if (record && record.state !== "pending") await this.#options.record.noteRecord(record);
    return record?.state === "pending";
  }

  /** Reports to viewers of the schedule when it fires next, and the last firings. */
  async #report(record: PromiseRecord, next: number | undefined, firings: readonly string[]): Promise<void> {
    const at = next === undefined ? "never again" : new Date(next).toISOString();
    const now = Date.now();
    const gap = Math.min((now - record.createdAt) * ENTRY_GAP_SHARE, MAX_ENTRY_GAP_MS);
    const isOften = next !== undefined && next - now < gap;
    const until = isOften
      ? ` (as of ${new Date(now).toISOString()}: it fires often, and the page of jobs tells the rest)`
      : "";
    const message = `fires next ${at}${firings.length > 0 ? `; last: ${firings.join(", ")}` : ""}${until}`;
    const entry = FeedEntry.parse({ questions: {}, message });
    const { n, entry: newest, writtenAt } = await this.#options.feeds.newest(record);
    if (newest?.message !== message && now - writtenAt >= gap)
      await this.#options.feeds.write(record.id, n + 1, entry, record);
  }

  #rows(where: string, ...values: SqlValue[]): Row[] {
    return this.#options.sql.all(`SELECT * FROM schedules WHERE ${where}`, ...values) as unknown as Row[];
  }

  #put({ id, next_at, after, running, queued, firings }: Row): void {
    this.#options.sql.all(
      "UPDATE schedules SET next_at = ?, after = ?, running = ?, queued = ?, firings = ? WHERE id = ?",
      ...[next_at, after, running, queued, firings, id],
    );
  }
}

const notStarted = (at: number, reason: string): string => `${stamp(at)} not started: ${reason}`;

/** The prefix of the names of definitions' schedules. Names that callers give have no colon. */
const OF_DEFINITION = "deployment:";

const isOfDefinition = (name: string): boolean => name.startsWith(schedule.prefix + escapeId(OF_DEFINITION));

/** The schedule of a tool's definition, with a hash of its content in its name. */
async function specOf(tool: string, definition: ToolSchedule): Promise<Schedule> {
  const { arguments: args = {}, missed = "skip", overlap = "skip" } = definition;
  const spec = { tool, arguments: args, when: whenOf(definition), missed, overlap };
  return { name: `${OF_DEFINITION}${tool}:${(await hashed(spec)).slice(0, 8)}`, ...spec };
}

/** The context with which a tool makes the arguments of a firing. */
function contextOf(store: RemoteStore, now: number) {
  const signal = new AbortController().signal;
  return {
    jobs: callerJobs(store, now, signal),
    now,
    signal,
    until: now + 30_000,
    tasks: false,
    asks: false,
    mayConfirm: false,
    inputResponses: {},
  };
}
