/**
 * Fires the schedules of a caller. Their promises decide which schedules exist. The object's storage holds when each is due
 * next, and is made again if it is lost. A firing starts a job whose name holds the time, so a repeated firing is one job.
 */

import { hashed, type Job, NotStarted } from "../../core/author/job.ts";
import { FeedEntry } from "../../core/jobs/feed/progress-feed.ts";
import type { ProgressFeeds } from "../../core/jobs/feed/progress-feeds.ts";
import { PausedJobs } from "../../core/jobs/paused-jobs.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import { startJob } from "../../core/jobs/start.ts";
import { decodeValue, getOf, resolveOf } from "../../core/resonate/codec.ts";
import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import { orUnread, ResonateRefused, ResonateUnavailable, unreadIn } from "../../core/resonate/connection/failures.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { escapeId, splitGeneration } from "../../core/resonate/ids.ts";
import type { ObjectSql, SqlValue } from "../../core/resonate/object-storage.ts";
import { check } from "../../core/tools/arguments.ts";
import { callerJobs } from "../../core/tools/caller-jobs.ts";
import type { Tool, ToolSchedule } from "../../core/tools/tool.ts";
import type { EdgeLog } from "../../functions/http/log.ts";
import type { JobLooks } from "../../functions/objects/job-looks.ts";
import type { SeenSchedule } from "../../functions/objects/seen.ts";
import { Schedule, schedule } from "./schedule.ts";
import { lastBetween, nextAfter, problemIn, stamp } from "./times.ts";

/** How late a firing may be before it counts as missed, in milliseconds. */
const LATE = 5 * 60_000;

/** The pause after an outage, and before a queued firing is tried again, in milliseconds. */
const AGAIN = 10_000;

/** The pause after another failure, in milliseconds. It may last until a deployment mends it, which then misses no firing. */
const AFTER_FAILURE = LATE - 60_000;

/** How often a firing that waits for the end of a pause is tried, in milliseconds. A pause may last for days. */
const AFTER_PAUSE = 60_000;

/** How many schedules fire at once, and how many of its last firings a schedule reports. */
const AT_ONCE = 10;
const TOLD = 5;

/**
 * The least time between two entries of a schedule's feed: a share of its age, but at most so many milliseconds. Entries are
 * never removed, so a feed must not grow fast. It is less than a day, as nightly firings are not exactly a day apart, and one day a
 * year has 23 hours.
 */
const GAP = { share: 0.1, most: 72_000_000 };

/** How many schedules a caller sees at once. */
const SEEN = 100;

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
  told: string;
}

interface ScheduleWorld {
  sql: ObjectSql;
  client: ResonateClient;
  feeds: ProgressFeeds;
  looks: Pick<JobLooks, "lookAt" | "noteRecord">;
  namespace: string;
  tools: readonly Tool[];
  /** The caller's store; `isOwn`: for the deployment's own work, which no quota counts. */
  store(isOwn: boolean): RemoteStore;
  log: Pick<EdgeLog, "error" | "describe">;
  nameOf(id: string): string;
  isBlocked(): Promise<boolean>;
}

export class Schedules {
  readonly #world: ScheduleWorld;
  readonly #paused: PausedJobs;

  constructor(world: ScheduleWorld) {
    this.#world = world;
    this.#paused = new PausedJobs(world.client, world.namespace);
  }

  /**
   * Makes the schedules of the deployment's definitions, and ends those that are no longer defined. A name holds a hash of its
   * schedule: a changed schedule has another name, and concurrent callers make one schedule.
   */
  async deploy(): Promise<void> {
    const store = this.#world.store(true);
    const wanted = new Set<string>();
    for (const tool of this.#world.tools) {
      if (!tool.schedule) continue;
      const refuse = (reason: string) => this.#world.log.error("schedule not made", { tool: tool.name, reason });
      const spec = await specOf(tool.name, tool.schedule);
      const { cron, every, at } = tool.schedule;
      const isOne = [cron, every, at].filter((time) => time !== undefined).length === 1;
      const problem =
        isOne && !Number.isNaN(Date.parse(at ?? "2000-01-01"))
          ? problemIn({ ...spec.when, at: undefined, ...(at && { every: 60 }) }, Date.now())
          : "it has one of cron, every and at, a time in ISO 8601";
      if (problem !== undefined) {
        refuse(problem);
        continue;
      }
      wanted.add(await schedule.name(spec));
      await startJob(store, schedule as Job, spec, Date.now()).catch((error) => {
        // The others are made all the same.
        if (!(error instanceof NotStarted) && !unreadIn(error)) throw error;
        refuse(error.message);
      });
    }
    for (const { id } of this.#world.sql.all("SELECT id FROM schedules")) {
      const name = this.#world.nameOf(String(id));
      if (isOfDefinition(name) && !wanted.has(splitGeneration(name).base))
        await store.cancel(name).catch(orUnread(undefined));
    }
  }

  /** When the next schedule is due, in milliseconds since the epoch; infinite where there is none. */
  nextAt(): number {
    const [row] = this.#world.sql.all("SELECT min(next_at) AS at FROM schedules");
    return Number(row?.at ?? Infinity);
  }

  /** The schedules as their caller sees them, the next to fire first. */
  list(): SeenSchedule[] {
    const { namespace, nameOf } = this.#world;
    return this.#rows("1 ORDER BY next_at, id LIMIT ?", SEEN).map(({ id, next_at, told }) => {
      const job_name = nameOf(id);
      const own = id.slice(0, id.length - job_name.length);
      const isJob = (name: string) =>
        this.#world.sql.all("SELECT 1 FROM firings WHERE job IN (?, ?)", own + name, namespace + name).length > 0;
      const isKnown = next_at > 0 && next_at < Number.MAX_SAFE_INTEGER;
      return {
        job_name,
        next_at: isKnown ? new Date(next_at).toISOString() : undefined,
        last: (JSON.parse(told) as string[]).map((text) => ({ text, isJob: isJob(text) })),
        isOfDefinition: isOfDefinition(job_name),
      };
    });
  }

  async run(): Promise<void> {
    const due = this.#rows("next_at <= ? ORDER BY next_at LIMIT ?", Date.now(), AT_ONCE);
    await Promise.all(
      due.map((row) =>
        this.#fire(row).catch((error) => {
          // The others must fire all the same.
          const { sql, log } = this.#world;
          const isOutage = error instanceof ResonateUnavailable && !(error instanceof ResonateRefused);
          if (!isOutage) log.error("schedule not fired", { job: row.id, reason: log.describe(error) });
          const again = Date.now() + (isOutage ? AGAIN : AFTER_FAILURE);
          sql.all("UPDATE schedules SET next_at = ? WHERE id = ?", again, row.id);
        }),
      ),
    );
  }

  async #fire(row: Row): Promise<void> {
    const { client, looks } = this.#world;
    const record = await client.call(getOf(row.id));
    // An edge may be about to create the promise. If it never does, the look removes the schedule.
    if (!record) {
      await looks.lookAt([row.id]);
      return this.#put({ ...row, next_at: Date.now() + AGAIN });
    }
    if (record.state !== "pending") return looks.noteRecord(record);
    const param = decodeValue(record.param) as { args?: unknown[] } | undefined;
    const { data: spec } = Schedule.safeParse(param?.args?.[0]);
    if (!spec) return this.#put({ ...row, next_at: Number.MAX_SAFE_INTEGER });
    const now = Date.now();
    const after = row.after || record.createdAt;
    const last = lastBetween(spec.when, after, now);
    const next = nextAfter(spec.when, now);
    const isMissed = last !== undefined && now - last > LATE && spec.missed === "skip";
    let { running, queued } = row;
    const told: string[] = JSON.parse(row.told);
    let firing = queued ?? undefined;
    const mayFire = last !== undefined || firing !== undefined;
    const isPaused = mayFire && (await this.#paused.find(schedule.kind)) !== undefined;
    // A firing within a pause counts as missed, but the only one of a schedule waits.
    const isLeftOut = isPaused ? spec.missed === "skip" && next !== undefined : isMissed;
    const isBlocked = mayFire && (await this.#world.isBlocked());
    if (last !== undefined) {
      if (isLeftOut) told.unshift(`${stamp(last)} ${isPaused ? "paused" : "missed"}`);
      else if (spec.overlap !== "skip" || !(await this.#isRunning(running))) firing = last;
      else told.unshift(`${stamp(last)} skipped, as ${this.#world.nameOf(running ?? "")} still runs`);
    }
    if (queued !== null && firing !== queued) told.unshift(`${stamp(queued)} skipped, as a later one is due`);
    queued = null;
    const mustWait = async () => isPaused || (spec.overlap === "queue" && (await this.#isRunning(running)));
    // A queued firing is given up too, so that the end of the block starts nothing at once.
    if (firing !== undefined && isBlocked) {
      told.unshift(notStarted(firing, "the caller is blocked"));
      firing = undefined;
    }
    if (firing !== undefined && (await mustWait())) queued = firing;
    else if (firing !== undefined) {
      const { base } = splitGeneration(this.#world.nameOf(row.id));
      const started = await this.#start(spec, firing, isOfDefinition(base));
      if (started.id !== undefined)
        this.#world.sql.all("INSERT OR IGNORE INTO firings VALUES (?, ?)", started.id, base);
      running = started.id ?? running;
      told.unshift(started.told);
    }
    const isOver = next === undefined && queued === null;
    // One that is over is looked at again, in case this process dies before it has ended it.
    const again = queued !== null || isOver ? now + (isPaused ? AFTER_PAUSE : AGAIN) : Number.MAX_SAFE_INTEGER;
    const next_at = Math.min(next ?? Number.MAX_SAFE_INTEGER, again);
    const kept = told.slice(0, TOLD);
    await this.#tell(record, next, kept);
    this.#put({ ...row, next_at, after: now, running, queued, told: JSON.stringify(kept) });
    const settled = isOver && (await client.call(resolveOf(record.id, { firings: kept })));
    if (settled) await looks.noteRecord(settled);
  }

  async #start(
    { tool: name, arguments: given }: Schedule,
    at: number,
    isOwn: boolean,
  ): Promise<{ id?: string; told: string }> {
    const refused = (reason: string) => ({ told: notStarted(at, reason) });
    const tool = this.#world.tools.find((one) => one.name === name);
    if (!tool?.job || !tool.argsOf) return refused(`there is no tool ${name} any more`);
    const store = this.#world.store(isOwn);
    try {
      const checked = await check(tool.input, given);
      if ("problems" in checked) return refused(checked.problems.join("; "));
      const args = await tool.argsOf(checked.args, contextOf(store, at));
      const job = tool.job as Job;
      const promise = await store.create(job, `${await job.name(args)}@${stamp(at)}`, args, Date.now());
      return { id: promise.id, told: promise.name };
    } catch (error) {
      if (error instanceof ResonateUnavailable) throw error;
      const isForCaller = error instanceof NotStarted || (error instanceof Error && error.name === "ToolError");
      return refused(isForCaller ? error.message : "an error inside");
    }
  }

  async #isRunning(id: string | null): Promise<boolean> {
    if (id === null) return false;
    const record = await this.#world.client.call(getOf(id));
    if (record && record.state !== "pending") await this.#world.looks.noteRecord(record);
    return record?.state === "pending";
  }

  /** Tells viewers of the schedule when it fires next, and of the last firings. */
  async #tell(record: PromiseRecord, next: number | undefined, told: readonly string[]): Promise<void> {
    const at = next === undefined ? "never again" : new Date(next).toISOString();
    const now = Date.now();
    const gap = Math.min((now - record.createdAt) * GAP.share, GAP.most);
    const isOften = next !== undefined && next - now < gap;
    const until = isOften
      ? ` (as of ${new Date(now).toISOString()}: it fires often, and the page of jobs tells the rest)`
      : "";
    const message = `fires next ${at}${told.length > 0 ? `; last: ${told.join(", ")}` : ""}${until}`;
    const entry = FeedEntry.parse({ questions: {}, message });
    const { n, entry: newest, writtenAt } = await this.#world.feeds.newest(record);
    if (newest?.message !== message && now - writtenAt >= gap)
      await this.#world.feeds.write(record.id, n + 1, entry, record);
  }

  #rows(where: string, ...values: SqlValue[]): Row[] {
    return this.#world.sql.all(`SELECT * FROM schedules WHERE ${where}`, ...values) as unknown as Row[];
  }

  #put({ id, next_at, after, running, queued, told }: Row): void {
    this.#world.sql.all(
      "UPDATE schedules SET next_at = ?, after = ?, running = ?, queued = ?, told = ? WHERE id = ?",
      ...[next_at, after, running, queued, told, id],
    );
  }
}

const notStarted = (at: number, reason: string): string => `${stamp(at)} not started: ${reason}`;

/** The prefix of the names of definitions' schedules. Names that callers give have no colon. */
const OF_DEFINITION = "deployment:";

const isOfDefinition = (name: string): boolean => name.startsWith(schedule.prefix + escapeId(OF_DEFINITION));

/** The schedule of a tool's definition, with a hash of its content in its name. */
async function specOf(tool: string, given: ToolSchedule): Promise<Schedule> {
  const { every, arguments: args = {}, missed = "skip", overlap = "skip", cron, timezone, at } = given;
  const all = { cron, timezone, at, ...(every !== undefined && { every: every / 1_000, from: 0 }) };
  const when = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  const spec = { tool, arguments: args, when, missed, overlap };
  return { name: `${OF_DEFINITION}${tool}:${(await hashed(spec)).slice(0, 8)}`, ...spec };
}

/** The context with which a tool makes the arguments of a firing. */
function contextOf(store: RemoteStore, now: number) {
  const signal = new AbortController().signal;
  return {
    ...{ jobs: callerJobs(store, now, signal), now, signal, until: now + 30_000 },
    ...{ tasks: false, asks: false, mayConfirm: false, inputResponses: {} },
  };
}
