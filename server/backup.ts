/** Reads and writes the rows of a server, to move them to another host or machine. */
import type { Row, Sql, SqlValue } from "./engine/sql.ts";

/** The tables, and the columns that order their rows. Listeners are left out: waiting clients register again. */
const TABLES = [
  ["promises", ["id"]],
  ["callbacks", ["awaited", "awaiter"]],
  ["tasks", ["id"]],
  ["schedules", ["id"]],
] as const;

export interface BackupRow {
  table: (typeof TABLES)[number][0];
  row: Row;
}

/** The last row read: the index of its table, and its values in the columns that order the table. */
export type BackupPosition = readonly [number, ...string[]];

/** The size of one page: about so many characters, and at most so many rows. */
const PAGE = { characters: 1_000_000, rows: 500 };
/** How many rows one statement reads into memory: each may be large. */
const ROWS_AT_ONCE = 5;

/** Reads a page of rows after a position. The last page has no `next`. */
export function readRows(sql: Sql, [at, ...key]: BackupPosition = [0]): { rows: BackupRow[]; next?: BackupPosition } {
  const [table, columns] = TABLES[at] ?? [];
  if (!table) return { rows: [] };
  const names = columns.join(", ");
  const after = `WHERE (${names}) > (${columns.map(() => "?").join(", ")})`;
  const rows: BackupRow[] = [];
  let last = key;
  for (let size = 0; ; ) {
    const where = last.length > 0 ? after : "";
    const found = sql.all(`SELECT * FROM ${table} ${where} ORDER BY ${names} LIMIT ${ROWS_AT_ONCE}`, ...last);
    for (const row of found) {
      rows.push({ table, row });
      size += sizeOf(row);
      last = columns.map((column) => String(row[column]));
    }
    if (found.length < ROWS_AT_ONCE) return at + 1 < TABLES.length ? { rows, next: [at + 1] } : { rows };
    if (size > PAGE.characters || rows.length >= PAGE.rows) return { rows, next: [at, ...last] };
  }
}

const sizeOf = (row: Row) =>
  Object.values(row).reduce<number>((sum, value) => sum + (typeof value === "string" ? value.length : 8), 0);

export function isEmpty(sql: Sql): boolean {
  return TABLES.every(([table]) => sql.all(`SELECT 1 AS one FROM ${table} LIMIT 1`).length === 0);
}

/**
 * Writes rows of a backup. Does not change a row whose key exists already.
 *
 * @throws {Error} for an unknown table or column
 */
export function writeRows(sql: Sql, rows: readonly BackupRow[]): void {
  sql.transaction(() => {
    for (const { table, row } of rows) {
      if (!TABLES.some(([name]) => name === table)) throw new Error(`A backup has no table ${table}.`);
      const columns = Object.keys(row);
      if (!columns.every((column) => /^\w+$/.test(column))) throw new Error(`${table} has no such columns.`);
      const values: SqlValue[] = Object.values(row);
      const marks = columns.map(() => "?").join(", ");
      sql.run(`INSERT INTO ${table} (${columns.join(", ")}) VALUES (${marks}) ON CONFLICT DO NOTHING`, ...values);
    }
  });
}
