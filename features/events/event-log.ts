/**
 * An append-only log of the events of a caller's jobs, in the order in which the caller's object learned of them. A cursor
 * names a position in it. The log holds references: what a job produced is read from its promise when an event is delivered.
 */
import type { EventReader, JobEvent, JobFilter, LogPage, LogQuery, PartTables } from "../../core/jobs/index.ts";
import { idsFrom, type ObjectSql, splitGeneration } from "../../core/resonate/index.ts";

/** How long an event is kept, in milliseconds. */
export const EVENT_RETENTION_MS = 7 * 86_400_000;

/** The most events of a log. Older ones are dropped, and readers learn of that. */
const MAX_EVENTS = 100_000;

/** How many events one read goes through. A reader with a narrow filter continues from there. */
const MAX_EVENTS_READ = 5_000;

/** How many events are dropped at a time. */
const MAX_EVENTS_DROPPED = 1_000;

/** How long after an event the cursor of a subscription that it does not concern may stay before it, in milliseconds. */
const MAX_CURSOR_AGE_MS = 86_400_000;

/** The conditions of a filter in SQL, for rows with a job's promise id in the column `id`, and its kind in `kind`. */
function conditionsOf({ jobs, kinds, labels, schedule }: JobFilter, id: "id" | "job") {
  const among = "IN (SELECT value FROM json_each(?))";
  const conditions: (readonly [where: string, value: string | undefined])[] = [
    [`${id} ${among}`, jobs && JSON.stringify(jobs)],
    [`kind ${among}`, kinds && JSON.stringify(kinds)],
    [`${id} IN (SELECT job FROM labels WHERE label ${among})`, labels && JSON.stringify(labels)],
    [`${id} IN (SELECT job FROM firings WHERE schedule = ?)`, schedule && splitGeneration(schedule).base],
  ];
  const present = conditions.filter(([, value]) => value !== undefined);
  return { where: present.map(([where]) => where), values: present.map(([, value]) => value as string) };
}

const EVENTS_TABLE = `CREATE TABLE events (
     position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, at REAL NOT NULL, logged_at REAL NOT NULL,
     job TEXT NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL
   ) STRICT;
   CREATE INDEX events_job ON events (job, name);
   CREATE TABLE log (epoch TEXT NOT NULL, floor INTEGER NOT NULL) STRICT;`;

const newEpoch = () => crypto.randomUUID().slice(0, 8);

/** The tables of the log. Cleared, it has a new epoch, which makes its readers begin again. */
export const eventTables = (sql: ObjectSql): PartTables => ({
  version: 1,
  statements: [EVENTS_TABLE],
  copied: ["log", "events"],
  clear() {
    sql.all("DELETE FROM events");
    sql.all("UPDATE log SET epoch = ?, floor = 0", newEpoch());
  },
  restore: { log: ({ floor }) => void sql.all("UPDATE log SET floor = ?", Number(floor)) },
});

export class EventLog implements EventReader {
  readonly #sql: ObjectSql;

  constructor(sql: ObjectSql) {
    this.#sql = sql;
  }

  /** Begins a log that has not begun. */
  open(): void {
    if (this.#sql.all("SELECT 1 FROM log").length === 0) this.#sql.all("INSERT INTO log VALUES (?, 0)", newEpoch());
  }

  /** Whether a filter matches a job of the caller's record. */
  isAmong(id: string, filter: JobFilter): boolean {
    const { where, values } = conditionsOf(filter, "id");
    const all = ["id = ?", ...where].join(" AND ");
    return this.#sql.all(`SELECT 1 FROM jobs WHERE ${all}`, id, ...values).length > 0;
  }

  /**
   * Appends an event unless it is in the log. Returns whether it is new. If the log still has an event with this id of an earlier
   * job of the same name, which was removed, the new event's id also holds the start of its job.
   */
  append({ id, name, at, job, kind, data }: JobEvent, now: number): boolean {
    const startedAt = this.#startOf(job);
    const where = "id = ? OR (id >= ? AND id < ?)";
    const rows = this.#sql.all(`SELECT at, logged_at FROM events WHERE ${where}`, id, ...idsFrom(`${id}@`));
    if (rows.some((row) => row.at === at || Number(row.logged_at) >= startedAt)) return false;
    const newId = rows.length > 0 ? `${id}@${startedAt}` : id;
    const values = [this.#head() + 1, newId, name, at, now, job, kind, data];
    this.#sql.all("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", ...values);
    return true;
  }

  /** When the last event of this name of a job was logged, in milliseconds since the epoch. */
  lastOf(job: string, name: string): number | undefined {
    const [row] = this.#sql.all("SELECT max(logged_at) AS at FROM events WHERE job = ? AND name = ?", job, name);
    return row?.at == null ? undefined : Number(row.at);
  }

  /**
   * The number of a job's last output (partial result or author's event) in the log; 0 without one. `startedAt` is the
   * job's start where the promise says it: that in the table may be a later request for the same job.
   */
  lastOutput(job: string, startedAt = Number.MAX_VALUE): number {
    return this.#last("output", job, Math.min(startedAt, this.#startOf(job)));
  }

  /** The number of the last entry of a job's progress feed that has events in the log; 0 without one. */
  lastEntry(job: string): number {
    return this.#last("n", job, this.#startOf(job));
  }

  #last(field: "output" | "n", job: string, since: number): number {
    const select = `SELECT max(json_extract(data, '$.${field}')) AS last FROM events WHERE job = ? AND logged_at >= ?`;
    return Number(this.#sql.all(select, job, since)[0]?.last ?? 0);
  }

  /** Whether no later event has the same type and job name. */
  isLast({ id, name, job }: JobEvent): boolean {
    const [row] = this.#sql.all(
      "SELECT id FROM events WHERE job = ? AND name = ? ORDER BY position DESC LIMIT 1",
      job,
      name,
    );
    return row?.id === id;
  }

  /** When a job was started. Events that were logged before are those of an earlier job of its name, which was removed. */
  #startOf(job: string): number {
    return Number(this.#sql.all("SELECT started_at FROM jobs WHERE id = ?", job)[0]?.started_at ?? 0);
  }

  read({ name, cursor, maxAgeMs, limit, ...filter }: LogQuery, now: number): LogPage {
    const head = this.#head();
    const cursorAt = (position: number) => this.cursorAt(position);
    if (cursor === null)
      return { events: [], from: cursorAt(head), cursor: cursorAt(head), truncated: false, hasMore: false };
    const { after, isKnown } = this.#find(cursor);
    const oldest = maxAgeMs === undefined ? 0 : now - maxAgeMs;
    const isSkipped =
      oldest > 0 &&
      this.#sql.all("SELECT 1 FROM events WHERE position > ? AND at < ? LIMIT 1", after, oldest).length > 0;
    const window = Math.min(after + MAX_EVENTS_READ, head);
    const { where, values } = conditionsOf(filter, "job");
    const all = ["position > ?", "position <= ?", "name = ?", "at >= ?", ...where].join(" AND ");
    const rows = this.#sql.all(
      `SELECT * FROM events WHERE ${all} ORDER BY position LIMIT ?`,
      ...[after, window, name, oldest, ...values, limit + 1],
    );
    const events = rows.slice(0, limit).map((row) => ({
      ...(row as unknown as JobEvent & { position: number }),
      cursor: cursorAt(Number(row.position)),
    }));
    const isFull = rows.length > limit;
    const end = isFull ? events.at(-1)?.cursor : undefined;
    const truncated = !isKnown || isSkipped;
    const hasMore = isFull || window < head;
    return { events, from: cursorAt(after), cursor: end ?? cursorAt(window), truncated, hasMore };
  }

  /** Where a reader begins: after its cursor, and after all events that are older than `maxAgeMs`. */
  begin(cursor: string | null, maxAgeMs: number | undefined, now: number): { cursor: string; truncated: boolean } {
    if (cursor === null) return { cursor: this.cursorAt(this.#head()), truncated: false };
    const { after, isKnown } = this.#find(cursor);
    const oldest = maxAgeMs === undefined ? 0 : now - maxAgeMs;
    const [row] = this.#sql.all(
      "SELECT max(position) AS last FROM events WHERE position > ? AND at < ?",
      after,
      oldest,
    );
    const last = row?.last == null ? undefined : Number(row.last);
    return { cursor: this.cursorAt(last ?? after), truncated: !isKnown || last !== undefined };
  }

  /** The event at a position; undefined where the log has dropped it. */
  at(position: number): JobEvent | undefined {
    return this.#sql.all("SELECT * FROM events WHERE position = ?", position)[0] as unknown as JobEvent | undefined;
  }

  /**
   * Whether a cursor is so far behind that storing a newer one is worthwhile: by many events, or by one that the log drops in some
   * days.
   */
  isFar(cursor: string, now: number): boolean {
    const { after } = this.#find(cursor);
    const [next] = this.#sql.all("SELECT logged_at FROM events WHERE position > ? ORDER BY position LIMIT 1", after);
    return this.#head() - after > MAX_EVENTS_DROPPED || Number(next?.logged_at) < now - MAX_CURSOR_AGE_MS;
  }

  cursorAt(position: number): string {
    return `${this.#state().epoch}.${position}`;
  }

  /** The position of a cursor. An unknown cursor begins with the oldest event. */
  #find(cursor: string): { after: number; isKnown: boolean } {
    const { epoch, floor } = this.#state();
    const [, wantedEpoch, position] = /^([0-9a-f]{8})\.(\d{1,15})$/.exec(cursor) ?? [];
    const isKnown = wantedEpoch === epoch && Number(position) >= floor && Number(position) <= this.#head();
    return { after: isKnown ? Number(position) : floor, isKnown };
  }

  /** Drops a bounded number of events that are too old or too many. Returns whether more may be left. */
  prune(now: number): boolean {
    const rows = this.#sql.all("SELECT position, logged_at FROM events ORDER BY position LIMIT ?", MAX_EVENTS_DROPPED);
    const newest = this.#head() - MAX_EVENTS;
    const old = rows.filter(
      (row) => Number(row.logged_at) < now - EVENT_RETENTION_MS || Number(row.position) <= newest,
    );
    const floor = old.at(-1)?.position;
    if (floor === undefined) return false;
    this.#sql.transaction(() => {
      this.#sql.all("DELETE FROM events WHERE position <= ?", floor);
      this.#sql.all("UPDATE log SET floor = ?", floor);
    });
    return old.length === MAX_EVENTS_DROPPED;
  }

  #head(): number {
    return Number(this.#sql.all("SELECT max(position) AS last FROM events")[0]?.last ?? this.#state().floor);
  }

  #state(): { epoch: string; floor: number } {
    const [row] = this.#sql.all("SELECT epoch, floor FROM log");
    return { epoch: String(row?.epoch), floor: Number(row?.floor) };
  }
}
