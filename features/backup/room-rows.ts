/** Reads and restores rooms for backups. A room is what one caller's object stores; one object keeps the list of rooms. */
import type { ObjectSql, Row, SqlValue } from "../../core/resonate/object-storage.ts";

/**
 * The tables of a backup, in the order in which they are restored. The first has one row, which begins a room; the last resumes
 * its web hooks. Secrets are copied as they are stored.
 */
export const TABLES = [
  "log",
  "notes",
  "jobs",
  "labels",
  "unsized",
  "events",
  "firings",
  "schedules",
  "verified",
  "deliveries",
  "subscriptions",
] as const;

/** About how many characters are read at once, and how many rows one statement reads. */
const PAGE = 1_000_000;
const ROWS = 200;

/** How many rooms are listed at once, and read for one answer. */
const ROOMS = 50;

/** A line of a backup: a row of the caller with the key `room`, which is empty for callers without identity. */
export interface RoomRow {
  room: string;
  table: (typeof TABLES)[number];
  row: Row;
}

/** The row after which to continue: the key of its room, its table as an index of {@link TABLES}, and its `rowid`. */
export type RoomPosition = readonly [room: string, table: number, row: number];

export interface RoomPage {
  rows: RoomRow[];
  next?: RoomPosition;
}

/** The table of the list of rooms. All objects have it, but only one of them fills it. */
export const ROOMS_TABLE = "CREATE TABLE rooms (key TEXT PRIMARY KEY) STRICT";

/** The methods of a caller's object that read and write its rows. */
export interface Room {
  rows(room: string, table: number, row: number): Promise<RoomPage>;
  restore(rows: readonly RoomRow[]): Promise<void>;
  clear(): Promise<void>;
}

/** Reads the rows of a room after a position, and those of later tables. */
export function readRoom(sql: ObjectSql, [room, from, after]: RoomPosition): RoomPage {
  const rows: RoomRow[] = [];
  let size = 0;
  for (let at = from, last = after; at < TABLES.length; ) {
    const table = TABLES[at] as RoomRow["table"];
    const statement = `SELECT rowid AS _at, * FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ${ROWS}`;
    const found = sql.all(statement, last);
    for (const { _at, ...row } of found) {
      rows.push({ room, table, row });
      size += JSON.stringify(row).length;
      last = Number(_at);
    }
    if (found.length < ROWS) [at, last] = [at + 1, 0];
    if (size > PAGE && at < TABLES.length) return { rows, next: [room, at, last] };
  }
  return { rows };
}

/**
 * Writes rows of a room in one transaction. The row of the table `log`, which is the first, calls `clear`: the room begins
 * empty, with a new epoch. A subscription continues after the events that it received, and is told that some may be missing.
 */
export function writeRoom(sql: ObjectSql, rows: readonly RoomRow[], now: number, clear: () => void): void {
  sql.transaction(() => {
    for (const { table, row } of rows) {
      if (!TABLES.includes(table)) throw new Error(`A backup of a caller has no table ${table}.`);
      const columns = Object.keys(row);
      if (!columns.every((column) => /^\w+$/.test(column))) throw new Error(`${table} has no such columns.`);
      if (table === "log") {
        clear();
        sql.all("UPDATE log SET floor = ?", Number(row.floor));
      } else {
        const marks = columns.map(() => "?").join(", ");
        sql.all(`INSERT OR REPLACE INTO ${table} (${columns.join(", ")}) VALUES (${marks})`, ...Object.values(row));
      }
      if (table !== "subscriptions" || row.ended !== null) continue;
      const epoch = String(sql.all("SELECT epoch FROM log")[0]?.epoch);
      const position = String(row.position).replace(/^[^.]*/, epoch);
      sql.all("UPDATE subscriptions SET position = ? WHERE id = ?", position, String(row.id));
      const gap = [String(row.id), `msg_gap_${crypto.randomUUID()}`, now];
      sql.all("INSERT OR IGNORE INTO deliveries VALUES (?, 0, 'gap', ?, 0, ?)", ...gap);
    }
  });
}

export class RoomList {
  readonly #sql: ObjectSql;
  readonly #roomOf: (key: string) => Room;

  constructor(sql: ObjectSql, roomOf: (key: string) => Room) {
    this.#sql = sql;
    this.#roomOf = roomOf;
  }

  add(key: string): void {
    this.#sql.all("INSERT OR IGNORE INTO rooms VALUES (?)", key);
  }

  /** Reads the rooms' rows from a position on, about {@link PAGE} characters. */
  async read(after: RoomPosition | undefined): Promise<RoomPage> {
    const rows: RoomRow[] = [];
    const others = after ? this.#list("key > ?", after[0]) : this.#list("1");
    const keys = after ? [after[0], ...others] : others;
    let size = 0;
    for (const [n, key] of keys.entries()) {
      const [, table, row] = after && n === 0 ? after : [key, 0, 0];
      const page = await this.#roomOf(key).rows(key, table, row);
      for (const one of page.rows) rows.push(one);
      if (page.next) return { rows, next: page.next };
      size += JSON.stringify(page.rows).length;
      const isMore = n + 1 < keys.length || others.length === ROOMS;
      if (isMore && (size > PAGE || n + 1 === keys.length)) return { rows, next: [key, TABLES.length, 0] };
    }
    return { rows };
  }

  /** Writes rows back, those of a room together. */
  async write(rows: readonly RoomRow[]): Promise<void> {
    for (const [key, own] of Map.groupBy(rows, ({ room }) => room)) {
      this.add(key);
      await this.#roomOf(key).restore(own);
    }
  }

  /** Removes everything that is stored for a caller. */
  async forget(key: string): Promise<void> {
    await this.#roomOf(key).clear();
    this.#sql.all("DELETE FROM rooms WHERE key = ?", key);
  }

  #list(where: string, ...values: SqlValue[]): string[] {
    const statement = `SELECT key FROM rooms WHERE ${where} ORDER BY key LIMIT ${ROOMS}`;
    return this.#sql.all(statement, ...values).map(({ key }) => String(key));
  }
}
