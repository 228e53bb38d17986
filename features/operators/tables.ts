/** The data that operators see, in the SQL storage of one object of a deployment. All methods are synchronous. */

import {
  type CallerUsage,
  FAILED_PREFIX,
  type FailedJob,
  type Filter,
  type FoundJob,
  type FoundJobs,
  firstLine,
  type Group,
  MAX_NAMED_COUNTS,
  type Overview,
  type PartTables,
  type Span,
  type WaitingJob,
  type WorkerReport,
} from "../../core/jobs/index.ts";
import { type ObjectSql, type Row, type SqlValue, splitKey } from "../../core/resonate/index.ts";
import { AUDIT_TABLE, AuditLog } from "./audit-log.ts";
import { PREVIEW_TABLE, Previews } from "./previews.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** The sizes of the periods of counts, and how long counts of each size are kept, in milliseconds. */
const PERIODS = [
  { size: MINUTE_MS, retentionMs: 2 * HOUR_MS },
  { size: HOUR_MS, retentionMs: 15 * DAY_MS },
  { size: DAY_MS, retentionMs: 400 * DAY_MS },
] as const;

/** The length of a span, the size of its periods, and how much earlier the time is that it is compared with. */
const SPANS: Readonly<Record<Span, { length: number; size: number; ago: number }>> = {
  hour: { length: HOUR_MS, size: MINUTE_MS, ago: DAY_MS },
  day: { length: DAY_MS, size: HOUR_MS, ago: DAY_MS },
  week: { length: 7 * DAY_MS, size: HOUR_MS, ago: 7 * DAY_MS },
};

const OTHER_NAME = "other";

/**
 * The largest numbers of jobs that are kept by name: failed ones, waiting ones, and those of one kind that wait for a worker. Jobs that need
 * a person find a place when the list is full of others: {@link WAIT_LIST_SHARES}.
 */
const MAX_FAILED_JOBS = 10_000;
const MAX_WAITING_JOBS = 5_000;
const MAX_UNTAKEN_JOBS = 50;

/** How many times {@link MAX_WAITING_JOBS} the list may hold when a job in a state is added to it. */
const WAIT_LIST_SHARES = { sleeping: 1, job: 1, failing: 2, answer: 2, blocked: 3 };

/** After how many milliseconds a job that no worker has taken counts as waiting for one. */
const MAX_UNTAKEN_MS = MINUTE_MS;

/** How long a failed job and a silent worker are kept, in milliseconds. */
const FAILURE_RETENTION_MS = 30 * DAY_MS;
const WORKER_RETENTION_MS = DAY_MS;

/** A count of a kind, by what is counted. */
interface Count {
  kind: string;
  name: string;
  n: number;
}

const TABLES = `
  CREATE TABLE counts (size INTEGER, at INTEGER, kind TEXT, name TEXT, n REAL, PRIMARY KEY (size, at, kind, name)) STRICT, WITHOUT ROWID;
  CREATE TABLE failures (n INTEGER PRIMARY KEY, job TEXT UNIQUE, caller TEXT, kind TEXT, reason TEXT, stack TEXT, worker TEXT, at INTEGER) STRICT;
  CREATE INDEX failures_reason ON failures (kind, reason, n);
  CREATE TABLE waits (job TEXT PRIMARY KEY, caller TEXT, kind TEXT, state TEXT, says TEXT, worker TEXT, at INTEGER) STRICT;
  CREATE INDEX waits_state ON waits (state, kind, at);
  CREATE TABLE slowest (kind TEXT PRIMARY KEY, job TEXT, ms REAL, at INTEGER) STRICT;
  CREATE TABLE workers (worker TEXT PRIMARY KEY, n INTEGER, at INTEGER, about TEXT) STRICT;
  CREATE TABLE usage (key TEXT PRIMARY KEY, day INTEGER, started INTEGER, running INTEGER, bytes REAL, failing INTEGER, rows INTEGER NOT NULL) STRICT;
  CREATE INDEX usage_day ON usage (day, started);
  CREATE INDEX usage_failing ON usage (failing) WHERE failing > 0;
  CREATE INDEX usage_bytes ON usage (bytes);
  ${AUDIT_TABLE}
  ${PREVIEW_TABLE}
  CREATE TABLE actions (n INTEGER PRIMARY KEY, who TEXT, action TEXT, state TEXT) STRICT;
  CREATE TABLE targets (action INTEGER, job TEXT, outcome TEXT, PRIMARY KEY (action, job)) STRICT, WITHOUT ROWID;
  CREATE INDEX targets_open ON targets (action) WHERE outcome IS NULL;
  CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT) STRICT;
`;

/** The tables of the operators' object, which no backup copies. */
export const OPERATE_TABLES: PartTables = { version: 1, statements: [TABLES], copied: [] };

/** A filter whose caller is known by its key. */
export type TableFilter = Omit<Filter, "caller"> & { key?: string };

export class OperateTables {
  readonly audit: AuditLog;
  readonly previews: Previews;
  readonly #sql: ObjectSql;
  /** How many jobs are listed as waiting. The platform charges for each row that a count reads. */
  #waiting: number | undefined;

  constructor(sql: ObjectSql) {
    this.#sql = sql;
    this.audit = new AuditLog(sql);
    this.previews = new Previews(sql);
  }

  all<T extends object = Row>(statement: string, ...values: SqlValue[]): T[] {
    return this.#sql.all<T>(statement, ...values);
  }

  transaction<T>(work: () => T): T {
    return this.#sql.transaction(work);
  }

  get<T>(name: string): T | undefined {
    const [row] = this.all<{ value: string }>("SELECT value FROM settings WHERE name = ?", name);
    return row && JSON.parse(row.value);
  }

  set(name: string, value: unknown): void {
    // An unchanged value writes no row.
    const statement =
      "INSERT INTO settings VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value WHERE value <> excluded.value";
    this.all(statement, name, JSON.stringify(value));
  }

  /** Stores a report, unless it was stored before. */
  report(report: WorkerReport, now: number): void {
    const { worker, n, counts, failed, waits, slowest, ...about } = report;
    this.transaction(() => {
      const [known] = this.all<{ n: number }>("SELECT n FROM workers WHERE worker = ?", worker);
      if (known && known.n >= n) return;
      this.all(
        "INSERT INTO workers VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET n = excluded.n, at = excluded.at, about = excluded.about",
        ...[worker, n, now, JSON.stringify(about)],
      );
      for (const [kind, name, count] of counts) this.count(kind, name, count, now);
      for (const each of failed) this.#fail(each, worker);
      for (const each of waits) this.#wait(each, worker, now);
      for (const [kind, job, ms] of slowest)
        this.all(
          `INSERT INTO slowest VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET job = excluded.job, ms = excluded.ms, at = excluded.at
           WHERE excluded.ms > ms OR at < excluded.at - ${DAY_MS}`,
          ...[kind, job, ms, now],
        );
    });
  }

  count(kind: string, name: string, n: number, now: number): void {
    this.#rollUp(now);
    const at = now - (now % MINUTE_MS);
    const names = this.#countOf("counts WHERE size = ? AND at = ?", MINUTE_MS, at);
    const known = "SELECT 1 FROM counts WHERE size = ? AND at = ? AND kind = ? AND name = ?";
    const isKnown = names < MAX_NAMED_COUNTS || this.all(known, MINUTE_MS, at, kind, name).length > 0;
    const as = isKnown
      ? [kind, name]
      : [kind.slice(0, 64), name.startsWith(FAILED_PREFIX) ? FAILED_PREFIX + OTHER_NAME : name];
    this.all(
      "INSERT INTO counts VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
      ...[MINUTE_MS, at, as[0] ?? "", as[1] ?? "", n],
    );
  }

  #fail({ job, kind, reason, stack = "", at }: FailedJob, worker: string): void {
    const [caller, first] = [splitKey(job).key, firstLine(reason)];
    this.all(
      "INSERT OR REPLACE INTO failures (job, caller, kind, reason, stack, worker, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
      ...[job, caller, kind, first, stack, worker, at],
    );
    this.all("DELETE FROM failures WHERE n <= (SELECT max(n) FROM failures) - ?", MAX_FAILED_JOBS);
  }

  #wait({ job, kind, state, says = "" }: WaitingJob, worker: string, now: number): void {
    if (state === undefined) {
      this.forget(job);
      return;
    }
    const [known] = this.all("SELECT state FROM waits WHERE job = ?", job);
    const isKnown = known !== undefined;
    this.#waiting ??= this.#countOf("waits");
    if (state === "worker") {
      const untaken = "SELECT 1 FROM waits WHERE state = 'worker' AND kind = ? LIMIT 1 OFFSET ?";
      if (this.all(untaken, kind, MAX_UNTAKEN_JOBS - 1).length > 0) return;
      // The row of a job that is started again stays as it is.
      if (says === "" && isKnown) return;
    } else {
      const limit = WAIT_LIST_SHARES[state] * MAX_WAITING_JOBS;
      // A job that no longer fails, asks or is blocked leaves the place of those that do.
      const hasLess = WAIT_LIST_SHARES[state] < (WAIT_LIST_SHARES[known?.state as keyof typeof WAIT_LIST_SHARES] ?? 0);
      if (isKnown ? hasLess && this.#waiting > limit : this.#waiting >= limit) {
        this.forget(job);
        return;
      }
    }
    if (!isKnown) this.#waiting += 1;
    this.all(
      `INSERT INTO waits VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET says = excluded.says, worker = excluded.worker,
       at = CASE WHEN state = excluded.state THEN at ELSE excluded.at END, state = excluded.state`,
      ...[job, splitKey(job).key, kind, state, says, worker, now],
    );
  }

  started(kind: string, job: string, now: number): void {
    this.#wait({ job, kind, state: "worker" }, "", now);
  }

  /** For each kind, the oldest jobs, up to `limit`, that a worker should have taken by now. */
  untaken(now: number, limit: number): { kind: string; job: string; says: string }[] {
    return this.all(
      `SELECT kind, job, says FROM
         (SELECT *, row_number() OVER (PARTITION BY kind ORDER BY at) AS nth FROM waits WHERE state = 'worker' AND at <= ?)
       WHERE nth <= ?`,
      ...[now - MAX_UNTAKEN_MS, limit],
    );
  }

  get hasUntaken(): boolean {
    return this.all("SELECT 1 FROM waits WHERE state = 'worker' LIMIT 1").length > 0;
  }

  /** Removes a job that no longer waits. */
  forget(job: string): void {
    const { length } = this.all("DELETE FROM waits WHERE job = ? RETURNING 1", job);
    if (this.#waiting !== undefined) this.#waiting -= length;
  }

  /** How many rows there are, by a table and its conditions. */
  #countOf(from: string, ...values: SqlValue[]): number {
    return this.all<{ n: number }>(`SELECT count(*) AS n FROM ${from}`, ...values)[0]?.n ?? 0;
  }

  /** Adds up the counts of minutes by hours, and of hours by days; removes rows that are too old. */
  #rollUp(now: number): void {
    const hour = now - (now % HOUR_MS);
    const done = this.get<number>("rolled") ?? hour;
    if (hour <= done && this.get("rolled") !== undefined) return;
    this.set("rolled", hour);
    for (const [i, { size, retentionMs }] of PERIODS.entries()) {
      const next = PERIODS[i + 1]?.size;
      // The next larger periods that are over. A late report counts at the time of its arrival.
      const [from, to] = next ? [done - (done % next), now - (now % next)] : [0, 0];
      if (next !== undefined && from < to)
        this.all(
          `INSERT INTO counts SELECT ?, at - at % ?, kind, name, sum(n) FROM counts WHERE size = ? AND at >= ? AND at < ?
           GROUP BY 2, 3, 4 ON CONFLICT DO UPDATE SET n = excluded.n`,
          ...[next, next, size, from, to],
        );
      this.all("DELETE FROM counts WHERE size = ? AND at < ?", size, now - retentionMs);
    }
    this.#waiting = undefined; // A transaction that failed has not changed the list.
    this.all("DELETE FROM failures WHERE at < ?", now - FAILURE_RETENTION_MS);
    this.all("DELETE FROM workers WHERE at < ?", now - WORKER_RETENTION_MS);
    this.audit.prune(now);
    this.all("DELETE FROM actions WHERE n NOT IN (SELECT n FROM audit)");
    this.all("DELETE FROM targets WHERE action NOT IN (SELECT n FROM actions)");
    this.all("DELETE FROM usage WHERE day < ?", now - 30 * DAY_MS);
  }

  /** Stores a caller's usage. `started` and `rows` count since its previous report. */
  setUsage({ key, started, running, bytes, failing, rows }: CallerUsage, now: number): void {
    this.all(
      `INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET running = excluded.running,
       bytes = excluded.bytes, failing = excluded.failing, day = excluded.day,
       started = excluded.started + CASE WHEN day = excluded.day THEN started ELSE 0 END,
       rows = excluded.rows + CASE WHEN day = excluded.day THEN rows ELSE 0 END`,
      ...[key, now - (now % DAY_MS), started, running, bytes, failing, rows],
    );
  }

  /** The counts of a span by period, kind and name. Minutes that are not added up yet are included. */
  counts(span: Span, now: number) {
    const { length, size } = SPANS[span];
    const from = now - length;
    const rows = this.all<Count & { at: number }>(
      "SELECT at, kind, name, n FROM counts WHERE size = ? AND at > ?",
      ...[size, from - size],
    );
    if (size > MINUTE_MS) {
      const rolled = this.get<number>("rolled") ?? 0;
      const later =
        "SELECT at - at % ? AS at, kind, name, sum(n) AS n FROM counts WHERE size = ? AND at >= ? GROUP BY 1, 2, 3";
      rows.push(...this.all<Count & { at: number }>(later, size, MINUTE_MS, Math.max(rolled, from)));
    }
    return { from, size, rows };
  }

  /** The counts of each kind in the same time a day or a week earlier, in whole hours. */
  #before(span: Span, now: number): Map<string, Record<string, number>> {
    const { length, ago } = SPANS[span];
    const rows = this.all<Count>(
      `SELECT kind, name, sum(n) AS n FROM counts
       WHERE size = ? AND at > ? AND at <= ? AND name IN ('started', 'complete', 'failed') GROUP BY 1, 2`,
      ...[HOUR_MS, now - ago - length - HOUR_MS, now - ago - HOUR_MS],
    );
    const kinds = new Map<string, Record<string, number>>();
    for (const { kind, name, n } of rows) kinds.set(kind, { ...kinds.get(kind), [name]: n });
    return kinds;
  }

  overview(span: Span, now: number): Omit<Overview, "alerts" | "paused" | "settings" | "kinds_paused" | "resonate"> {
    const { from, size, rows } = this.counts(span, now);
    const [kinds, groups] = [new Map<string, Record<string, number>>(), new Map<string, Group>()];
    const first = from - (from % size);
    const times = Array.from({ length: Math.floor((now - first) / size) + 1 }, (_, i) => first + i * size);
    const chart = {
      time: times.map((at) => new Date(at).toISOString()),
      ended: times.map(() => 0),
      failed: times.map(() => 0),
    };
    for (const { kind, name, n, at } of rows) {
      if (name.startsWith(FAILED_PREFIX)) {
        const [reason, key] = [name.slice(FAILED_PREFIX.length), `${kind} ${name}`];
        const group = groups.get(key) ?? { kind, reason, count: 0, last_at: 0 };
        groups.set(key, { ...group, count: group.count + n, last_at: Math.max(group.last_at, at) });
        continue;
      }
      const own = kinds.get(kind) ?? {};
      kinds.set(kind, own);
      own[name] = (own[name] ?? 0) + n;
      const i = times.indexOf(at);
      if (i >= 0 && name === "complete") chart.ended[i] = (chart.ended[i] ?? 0) + n;
      if (i >= 0 && name === "failed") chart.failed[i] = (chart.failed[i] ?? 0) + n;
    }
    const before = this.#before(span, now);
    for (const kind of before.keys()) kinds.set(kind, kinds.get(kind) ?? {});
    const waits = this.all<Overview["waits"][number]>(
      `SELECT kind, state, count(*) AS n, min(at) AS since FROM waits WHERE state <> 'worker' OR at <= ?
       GROUP BY state, kind`,
      now - MAX_UNTAKEN_MS,
    );
    return {
      span,
      at: now,
      chart,
      kinds: [...kinds]
        .map(([kind, counts]) => ({ kind, ...counts, before: before.get(kind) ?? {} }))
        .sort((a, b) => a.kind.localeCompare(b.kind)),
      groups: [...groups.values()].sort((a, b) => b.count - a.count).slice(0, 50),
      waits,
      waits_complete: waits.reduce((sum, { n }) => sum + n, 0) < MAX_WAITING_JOBS,
      slowest: this.all("SELECT kind, job, ms FROM slowest WHERE at > ?", from),
      workers: this.workers(),
      callers: this.all(
        "SELECT key, started, running, bytes, failing, rows FROM usage WHERE day = ? ORDER BY started DESC LIMIT 20",
        now - (now % DAY_MS),
      ),
    };
  }

  /** Callers whose web hooks fail, and those with the most bytes above `bytes`, unless that is 0. */
  troubled(bytes: number): CallerUsage[] {
    const columns = "key, started, running, bytes, failing, rows";
    return [
      ...this.all<CallerUsage>(`SELECT ${columns} FROM usage WHERE failing > 0 LIMIT 20`),
      ...(bytes > 0
        ? this.all<CallerUsage>(
            `SELECT ${columns} FROM usage WHERE bytes > ? AND failing = 0 ORDER BY bytes DESC LIMIT 20`,
            bytes,
          )
        : []),
    ];
  }

  workers(): Overview["workers"] {
    const rows = this.all<{ worker: string; at: number; about: string }>(
      "SELECT worker, at, about FROM workers ORDER BY at DESC LIMIT 100",
    );
    return rows.map(({ about, ...row }) => ({ ...row, ...JSON.parse(about) }));
  }

  /** The jobs that match a filter, newest first. */
  jobs(filter: TableFilter, limit: number): FoundJobs {
    const isFailed = (filter.state ?? "failed") === "failed";
    const of = [
      ["kind = ?", filter.kind],
      [isFailed ? "reason = ?" : "says = ?", filter.reason],
      ["caller = ?", filter.key],
      ["state = ?", isFailed ? undefined : filter.state],
      ["at <= ?", filter.state === "worker" ? Date.now() - MAX_UNTAKEN_MS : undefined],
    ].flatMap(([where, value]) => (value === undefined ? [] : [{ where, value }]));
    const [where, values] = [
      ["1", ...of.map((each) => each.where)].join(" AND "),
      of.map((each) => each.value as SqlValue),
    ];
    const table = isFailed ? "failures" : "waits";
    const count = this.#countOf(`${table} WHERE ${where}`, ...values);
    const columns = isFailed
      ? "job, kind, 'failed' AS state, reason AS says, worker, at"
      : "job, kind, state, says, worker, at";
    const found = `SELECT ${columns} FROM ${table} WHERE ${where} ORDER BY at DESC LIMIT ?`;
    return { jobs: this.all<FoundJob>(found, ...values, limit), count };
  }

  /** The reports about one job. */
  about(job: string): { failure: Row | undefined; wait: Row | undefined } {
    const [failure] = this.all("SELECT reason, stack, worker, at FROM failures WHERE job = ?", job);
    const [wait] = this.all(
      "SELECT state, says, worker, at FROM waits WHERE job = ? AND (state <> 'worker' OR at <= ?)",
      ...[job, Date.now() - MAX_UNTAKEN_MS],
    );
    return { failure, wait };
  }
}
