/** Reads and writes the rows of a server, to move them to another host or machine. */
import type { Row, Sql, SqlValue } from "./sql.ts";

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

/** The last row of a page: the index of its table, and its values in the columns that order the table. */
export type BackupPosition = readonly [number, ...string[]];

/** The size of one page, which may exceed the characters by its last rows. */
const MAX_PAGE_CHARACTERS = 1_000_000;
const MAX_PAGE_ROWS = 500;
/** How many rows one statement reads into memory: each may be large. */
const ROWS_PER_STATEMENT = 5;

/** Reads a page of rows after a position. The last page has no `next`. */
export function readRows(
  sql: Sql,
  [tableIndex, ...key]: BackupPosition = [0],
): { rows: BackupRow[]; next?: BackupPosition } {
  const [table, columns] = TABLES[tableIndex] ?? [];
  if (!table) return { rows: [] };
  const names = columns.join(", ");
  const afterKey = `WHERE (${names}) > (${columns.map(() => "?").join(", ")})`;
  const rows: BackupRow[] = [];
  let last = key;
  for (let characters = 0; ;) {
    const condition = last.length > 0 ? afterKey : "";
    const batch = sql.all(`SELECT * FROM ${table} ${condition} ORDER BY ${names} LIMIT ${ROWS_PER_STATEMENT}`, ...last);
    for (const row of batch) {
      rows.push({ table, row });
      characters += charactersOf(row);
      last = columns.map((column) => String(row[column]));
    }
    if (batch.length < ROWS_PER_STATEMENT)
      return tableIndex + 1 < TABLES.length ? { rows, next: [tableIndex + 1] } : { rows };
    if (characters > MAX_PAGE_CHARACTERS || rows.length >= MAX_PAGE_ROWS) return { rows, next: [tableIndex, ...last] };
  }
}

const charactersOf = (row: Row) =>
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
      const placeholders = columns.map(() => "?").join(", ");
      sql.run(
        `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${placeholders}) ON CONFLICT DO NOTHING`,
        ...values,
      );
    }
  });
}
