/** All that a server keeps, as rows that another host of it takes up again: the same in every host. */
import type { Row, Sql, SqlValue } from "./engine/sql.ts";

/** The tables and what orders their rows. Listeners are not among them: who waits, says so again. */
const TABLES = [
  ["promises", ["id"]],
  ["callbacks", ["awaited", "awaiter"]],
  ["tasks", ["id"]],
  ["schedules", ["id"]],
] as const;

export type TableName = (typeof TABLES)[number][0];

/** A row and the table that it is of: a line of a backup. */
export interface BackupRow {
  table: TableName;
  row: Row;
}

/** After which row to go on: its table's number, and what orders it there. */
export type Place = readonly [number, ...string[]];

/** About how much of the rows' texts is read at once, in characters. */
const PAGE = 1_000_000;
/** How many rows at most. */
const ROWS = 500;
/** How many in one statement: each may be large, and memory holds them. */
const FEW = 5;

/** The rows after a place, and where to go on; without `next` these are the last. */
export function readRows(sql: Sql, [at, ...key]: Place = [0]): { rows: BackupRow[]; next?: Place } {
  const [table, columns] = TABLES[at] ?? [];
  if (!table) return { rows: [] };
  const names = columns.join(", ");
  const after = `WHERE (${names}) > (${columns.map(() => "?").join(", ")})`;
  const rows: BackupRow[] = [];
  let place = key;
  for (let size = 0; ; ) {
    const where = place.length > 0 ? after : "";
    const found = sql.all(`SELECT * FROM ${table} ${where} ORDER BY ${names} LIMIT ${FEW}`, ...place);
    for (const row of found) {
      rows.push({ table, row });
      size += sizeOf(row);
      place = columns.map((column) => String(row[column]));
    }
    if (found.length < FEW) return at + 1 < TABLES.length ? { rows, next: [at + 1] } : { rows };
    if (size > PAGE || rows.length >= ROWS) return { rows, next: [at, ...place] };
  }
}

const sizeOf = (row: Row) =>
  Object.values(row).reduce<number>((sum, value) => sum + (typeof value === "string" ? value.length : 8), 0);

/** Whether nothing is kept yet. */
export function isEmpty(sql: Sql): boolean {
  return TABLES.every(([table]) => sql.all(`SELECT 1 AS one FROM ${table} LIMIT 1`).length === 0);
}

/**
 * Writes rows of a backup; one that is there already stays.
 *
 * @throws {Error} for what is no row of these tables
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
