/** A caller's jobs in the SQL storage of its Durable Object. All methods are synchronous. */
import {
  type CallerLimits,
  type ListedJob,
  type ListQuery,
  type ObservedJob,
  type PartTables,
  type RecordedJobs,
  type ReserveAnswer,
  type StartedJob,
  wordsOf,
} from "../../core/jobs/index.ts";
import { GENERATION_SEPARATOR, idsFrom, type ObjectSql, type Row, type SqlValue } from "../../core/resonate/index.ts";

/** Which schedule has started a job. `schedule` is the name of its first generation. */
const FIRINGS_TABLE = `CREATE TABLE firings (job TEXT PRIMARY KEY, schedule TEXT NOT NULL) STRICT;
   CREATE INDEX firings_schedule ON firings (schedule);
   CREATE TRIGGER firings_removed AFTER DELETE ON jobs BEGIN DELETE FROM firings WHERE job = old.id; END;`;

/**
 * `hidden`: whether lists leave the job out until it is started again. `child`: whether a durable function started it. Its end is then
 * no event, and its bytes count for the job that started it.
 */
const JOBS_TABLE = `CREATE TABLE jobs (
     id TEXT PRIMARY KEY, kind TEXT NOT NULL, state TEXT NOT NULL, started_at REAL NOT NULL, settled_at REAL, due REAL NOT NULL,
     period TEXT NOT NULL, count INTEGER NOT NULL, looked_at REAL NOT NULL, bytes REAL NOT NULL, hidden INTEGER NOT NULL,
     child INTEGER NOT NULL
   ) STRICT;
   CREATE INDEX jobs_time ON jobs (started_at, id);
   CREATE INDEX jobs_kind ON jobs (kind, started_at, id);
   CREATE INDEX jobs_state ON jobs (state, started_at, id);
   CREATE INDEX jobs_kind_state ON jobs (kind, state, started_at, id);
   CREATE INDEX jobs_reserved ON jobs (period) WHERE state = 'pending' AND count > 0;`;

/** The sum of the jobs' bytes, which triggers keep. */
const STORED_TABLE = `CREATE TABLE stored (bytes REAL NOT NULL) STRICT;
   INSERT INTO stored VALUES (0);
   CREATE TRIGGER jobs_added AFTER INSERT ON jobs WHEN new.bytes > 0 BEGIN
     UPDATE stored SET bytes = bytes + new.bytes;
   END;
   CREATE TRIGGER jobs_changed AFTER UPDATE OF bytes ON jobs WHEN new.bytes <> old.bytes BEGIN
     UPDATE stored SET bytes = bytes + new.bytes - old.bytes;
   END;
   CREATE TRIGGER jobs_removed AFTER DELETE ON jobs WHEN old.bytes > 0 BEGIN
     UPDATE stored SET bytes = bytes - old.bytes;
   END;`;

const LABELS_TABLE = `CREATE TABLE labels (job TEXT NOT NULL, label TEXT NOT NULL, PRIMARY KEY (job, label)) STRICT;
   CREATE INDEX labels_label ON labels (label, job);
   CREATE TRIGGER labels_removed AFTER DELETE ON jobs BEGIN DELETE FROM labels WHERE job = old.id; END;`;

/** When the sizes of ended jobs are looked at again. */
const UNSIZED_TABLE = `CREATE TABLE unsized (job TEXT PRIMARY KEY, at REAL NOT NULL) STRICT;
   CREATE TRIGGER unsized_removed AFTER DELETE ON jobs BEGIN DELETE FROM unsized WHERE job = old.id; END;`;

/** The tables of a caller's record. */
export const RECORD_TABLES: PartTables = {
  version: 1,
  statements: [
    "CREATE TABLE notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    JOBS_TABLE,
    STORED_TABLE,
    LABELS_TABLE,
    UNSIZED_TABLE,
    FIRINGS_TABLE,
  ],
  // The sum of the bytes is derived from the jobs.
  copied: ["notes", "jobs", "labels", "unsized", "firings"],
};

/**
 * How long a job may be in the table before its promise exists, in milliseconds: longer than an edge tries to create it. After
 * that, a job whose edge died in between is removed.
 */
const MAX_START_MS = 30_000;

/**
 * When an open job is next due for a look: when it is expected to end, and as long as it stays open after that, after pauses that
 * double up to an hour.
 */
const NEXT_LOOK = `iif(looked_at < due, due, looked_at + min(3600000, max(${MAX_START_MS}, looked_at - due)))`;

/** How often jobs that may still grow, as they run or clean up, are looked at for their sizes; in milliseconds. */
export const SIZE_CHECK_INTERVAL_MS = 60_000;

/** How many jobs a search goes through at once: a few milliseconds of the thread that serves other callers too. */
const MAX_SEARCHED_JOBS = 2_000;

/** How far apart the clocks of an edge and of the Resonate server may be, in milliseconds. */
const MAX_CLOCK_SKEW_MS = 60_000;

/** What happens besides in the transactions that change the table. */
export interface JobTableHooks {
  /** Refuses a job that is about to be entered, in words. */
  refuse?(job: StartedJob): string | undefined;
  /** Called with each job that is entered. */
  onStart?(job: StartedJob): void;
  /** Called with each job that is found to have ended since its caller started it. */
  onEnd?(job: StartedJob): void;
}

export class JobTable implements RecordedJobs {
  readonly #sql: ObjectSql;
  readonly #hooks: JobTableHooks;
  /** The reservations of each period, if they were added up already. */
  readonly #used = new Map<string, number>();

  constructor(sql: ObjectSql, hooks: JobTableHooks = {}) {
    this.#sql = sql;
    this.#hooks = hooks;
  }

  /** A named value in the object's storage. */
  get(name: string): string | undefined {
    return this.#sql.all("SELECT value FROM notes WHERE name = ?", name)[0]?.value as string | undefined;
  }

  set(name: string, value: string): void {
    this.#sql.all("INSERT INTO notes VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", name, value);
  }

  get stored(): number {
    return Number(this.#sql.all("SELECT bytes FROM stored")[0]?.bytes ?? 0);
  }

  reserve(job: StartedJob, limits: CallerLimits, now: number): ReserveAnswer {
    const [row] = this.#sql.all("SELECT state FROM jobs WHERE id = ?", job.id);
    if (row?.state === "pending") {
      this.#sql.all("UPDATE jobs SET looked_at = ?, child = 0 WHERE id = ?", now, job.id);
      return "known";
    }
    const used = limits.jobs === 0 ? 0 : this.used(job.period);
    const refused = limits.jobs > 0 ? this.#hooks.refuse?.(job) : undefined;
    if (refused !== undefined) return { refused };
    if (limits.jobs > 0 && used + job.count > limits.jobs) return "full";
    if (limits.bytes > 0 && this.stored + job.bytes > limits.bytes) return "stored";
    this.#write(job, now);
    if (limits.jobs > 0) this.#used.set(job.period, used + job.count);
    this.#hooks.onStart?.(job);
    return "reserved";
  }

  /** How many reservations are taken in a period. */
  used(period: string): number {
    const known = this.#used.get(period);
    if (known !== undefined) return known;
    const where = "period = ? AND state = 'pending' AND count > 0";
    const used = Number(this.#sql.all(`SELECT sum(count) AS sum FROM jobs WHERE ${where}`, period)[0]?.sum ?? 0);
    this.#used.set(period, used);
    return used;
  }

  /** Adds a job that a durable function started for the caller. */
  noteChild(job: StartedJob, now: number): void {
    this.#write(job, now, true);
  }

  /** Records the observed state of a job. */
  note(job: ObservedJob, now: number, onlyKnown = false): void {
    this.#used.clear();
    if (job.state === undefined) {
      this.#sql.all(
        "DELETE FROM jobs WHERE id = ? AND (state <> 'pending' OR looked_at < ?)",
        job.id,
        now - MAX_START_MS,
      );
      return;
    }
    const [row] = this.#sql.all("SELECT state, started_at, child FROM jobs WHERE id = ?", job.id);
    if (!row && onlyKnown) return;
    const startedAt = Number(row?.started_at);
    // A result that existed when the caller asked was the answer.
    const isNew = (job.settledAt ?? now) >= startedAt - MAX_CLOCK_SKEW_MS;
    if (row?.state === "pending" && !row.child && job.state !== "pending" && isNew)
      this.#hooks.onEnd?.({ ...job, startedAt });
    // The caller has asked for the job again, and thereby started or found it.
    if (!onlyKnown && row)
      this.#sql.all("UPDATE jobs SET hidden = 0, child = 0 WHERE id = ? AND (hidden = 1 OR child = 1)", job.id);
    this.#write(job, now);
  }

  /** Removes all generations of a job name. `isHidden`: keeps them, but out of lists until they are started again. */
  forget(id: string, isHidden: boolean): void {
    this.#used.clear();
    const all = [id, ...idsFrom(id + GENERATION_SEPARATOR)];
    const where = "id = ? OR (id >= ? AND id < ?)";
    if (isHidden) this.#sql.all(`UPDATE jobs SET hidden = 1 WHERE ${where}`, ...all);
    else this.#sql.all(`DELETE FROM jobs WHERE ${where}`, ...all);
  }

  /** Jobs that count in a period, those most likely to have ended first. */
  reserved(period: string, now: number, limit: number): string[] {
    const where = `period = ? AND state = 'pending' AND count > 0 ORDER BY ${NEXT_LOOK} > ?, looked_at LIMIT ?`;
    return this.#ids(where, period, now, limit);
  }

  /** Jobs whose rows are outdated: those that should have ended, and those that ended before `endedBefore`. */
  stale(now: number, endedBefore: number, limit: number): string[] {
    return [
      ...this.#ids(`state = 'pending' AND ${NEXT_LOOK} < ? LIMIT ?`, now, limit),
      ...this.#ids("settled_at < ? AND looked_at < ? LIMIT ?", endedBefore, now - 86_400_000, limit),
    ].slice(0, limit);
  }

  labelsOf(id: string): string[] {
    return this.#sql.all("SELECT label FROM labels WHERE job = ? ORDER BY rowid", id).map(({ label }) => String(label));
  }

  kindOf(id: string): string | undefined {
    return this.#sql.all("SELECT kind FROM jobs WHERE id = ?", id)[0]?.kind as string | undefined;
  }

  noteFiring(id: string, schedule: string): void {
    this.#sql.all("INSERT OR IGNORE INTO firings VALUES (?, ?)", id, schedule);
  }

  isFired(ids: readonly string[]): boolean {
    const among = "job IN (SELECT value FROM json_each(?))";
    return this.#sql.all(`SELECT 1 FROM firings WHERE ${among} LIMIT 1`, JSON.stringify(ids)).length > 0;
  }

  /** Has the size of a job looked at again at the time `at`; without it, never. */
  resize(id: string, at?: number): void {
    this.#sql.all("DELETE FROM unsized WHERE job = ?", id);
    if (at !== undefined) this.#sql.all("INSERT INTO unsized VALUES (?, ?)", id, at);
  }

  /** The ended jobs whose size is due to be looked at. */
  unsized(now: number, limit: number): string[] {
    return this.#sql.all("SELECT job FROM unsized WHERE at <= ? LIMIT ?", now, limit).map(({ job }) => String(job));
  }

  /** Whether at least `count` jobs have no final size yet: they run, or were cut off. */
  hasUnsized(count: number): boolean {
    const jobs = "SELECT id FROM jobs WHERE state = 'pending' UNION ALL SELECT job FROM unsized LIMIT ?";
    return this.#sql.all(jobs, count).length === count;
  }

  isPending(id: string): boolean {
    return this.#sql.all("SELECT 1 FROM jobs WHERE id = ? AND state = 'pending'", id).length > 0;
  }

  /** When the next open job is due for a look, and when the one looked at longest ago was; infinite if none is open. */
  nextLook(): { due: number; oldest: number } {
    const times = `min(${NEXT_LOOK}) AS due, min(looked_at) AS oldest`;
    const [row] = this.#sql.all(`SELECT ${times} FROM jobs WHERE state = 'pending'`);
    return { due: Number(row?.due ?? Infinity), oldest: Number(row?.oldest ?? Infinity) };
  }

  newest(limit: number): string[] {
    return this.#ids("1 ORDER BY started_at DESC LIMIT ?", limit);
  }

  /** Drops the cached sums after the stored rows were replaced. */
  load(): void {
    this.#used.clear();
  }

  /** Jobs that are not known to have ended, the earliest due first. */
  pending(limit: number): string[] {
    return this.#ids("state = 'pending' ORDER BY due LIMIT ?", limit);
  }

  /**
   * Jobs that are not known to have ended: first those that are due for a look, then those that were looked at until `before`,
   * the one looked at longest ago first.
   */
  leastSeen(now: number, limit: number, before = now): string[] {
    const where = `state = 'pending' AND (${NEXT_LOOK} <= ? OR looked_at <= ?) ORDER BY ${NEXT_LOOK} > ?, looked_at LIMIT ?`;
    return this.#ids(where, now, before, now, limit);
  }

  /**
   * `nameAt`: the index in the ids at which names begin. `areEndsReported`: whether jobs are known to have ended when they have, except
   * for those that are due for a look. The list of an unfinished search ends with a job that has `isSearchEnd`.
   */
  list(
    { kind, state, after, search = "", limit }: ListQuery,
    { nameAt = 0, areEndsReported = false }: { nameAt?: number; areEndsReported?: boolean } = {},
  ): ListedJob[] {
    const words = wordsOf(search);
    // A row's text is made once for all words. No word has a space, so none is found across two names.
    const labels = "coalesce((SELECT group_concat(label, ' ') FROM labels WHERE job = id), '')";
    const text = `lower(substr(id, ?) || ' ' || kind || ' ' || ${labels}) AS text`;
    const isFound = words.map(() => "instr(text, ?)").join(" AND ");
    const newest = "ORDER BY started_at DESC, id DESC LIMIT ?";
    const rowsIn = (inState?: string) => {
      const isOther = inState !== state && areEndsReported;
      const where = [
        "(started_at, id) < (?, ?)",
        "hidden = 0",
        kind !== undefined && "kind = ?",
        inState && "state = ?",
        isOther && `${NEXT_LOOK} <= ?`,
      ];
      const columns = "SELECT id, state, started_at";
      const jobs = `FROM jobs WHERE ${where.filter(Boolean).join(" AND ")} ${newest}`;
      const all = [
        after?.startedAt ?? Number.MAX_VALUE,
        after?.id ?? "",
        kind,
        inState,
        isOther ? Date.now() : undefined,
      ];
      const values = all.filter((value) => value !== undefined);
      if (words.length === 0) return this.#sql.all(`${columns} ${jobs}`, ...values, limit).map(rowOf);
      const found = `SELECT * FROM (${columns}, ${text} ${jobs}) WHERE ${isFound} ${newest}`;
      const rows = this.#sql.all(found, nameAt + 1, ...values, MAX_SEARCHED_JOBS, ...words, limit).map(rowOf);
      if (rows.length === limit) return rows;
      const passed = this.#sql.all(`${columns} ${jobs} OFFSET ?`, ...values, 1, MAX_SEARCHED_JOBS - 1).map(rowOf);
      return [...rows, ...passed.map((row) => ({ ...row, isSearchEnd: true as const }))];
    };
    // A job that was pending when last seen may have ended.
    const states = state === undefined ? [undefined] : [...new Set([state, "pending"])];
    const rows = states.flatMap(rowsIn).sort((a, b) => b.startedAt - a.startedAt || (a.id < b.id ? 1 : -1));
    const end = rows.findIndex(({ isSearchEnd }) => isSearchEnd);
    const page = rows.slice(0, Math.min(limit, end < 0 ? limit : end + 1));
    return page.map((row) => ({ ...row, labels: this.labelsOf(row.id) }));
  }

  transaction<T>(work: () => T): T {
    return this.#sql.transaction(work);
  }

  #write(
    { id, kind, state, startedAt, settledAt, due, period, count, bytes, labels }: StartedJob,
    now: number,
    isChild = false,
  ): void {
    // A job keeps the labels of its first start.
    if (labels.length > 0 && this.kindOf(id) === undefined)
      for (const label of labels) this.#sql.all("INSERT OR IGNORE INTO labels VALUES (?, ?)", id, label);
    // A start after the end of the row's job begins another job of the name, unless that end turns out to be its answer.
    const isAnother = "excluded.state = 'pending' AND settled_at < excluded.started_at";
    // The promise of an open job shows when it times out, which may be long after its expected end.
    this.#sql.all(
      `INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?) ON CONFLICT DO UPDATE SET
         started_at = iif(${isAnother}, excluded.started_at, min(started_at, excluded.started_at)),
         state = excluded.state, settled_at = excluded.settled_at,
         due = iif(state = 'pending' AND excluded.state = 'pending', min(due, excluded.due), excluded.due),
         period = excluded.period, count = excluded.count,
         looked_at = excluded.looked_at, bytes = iif(child, 0, iif(${isAnother}, excluded.bytes, max(bytes, excluded.bytes)))`,
      ...[id, kind, state, startedAt, settledAt, due, period, count, now],
      ...[isChild ? 0 : bytes, Number(isChild)],
    );
  }

  #ids(where: string, ...values: SqlValue[]): string[] {
    return this.#sql.all(`SELECT id FROM jobs WHERE ${where}`, ...values).map(({ id }) => String(id));
  }
}

const rowOf = (row: Row): Omit<ListedJob, "labels"> => ({
  id: String(row.id),
  state: row.state as StartedJob["state"],
  startedAt: Number(row.started_at),
});
