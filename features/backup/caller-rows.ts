/** Reads and restores the rows of a caller's object for backups. */
import {
  BEGIN_TABLE,
  type CallerRow,
  type CallerRowPage,
  type CallerRowPosition,
  type PartHost,
  type PartTables,
} from "../../core/jobs/index.ts";
import type { ObjectSql } from "../../core/resonate/index.ts";

/** About how many characters are read at once. */
export const PAGE_CHARACTERS = 1_000_000;

/** How many rows one statement reads. */
const ROWS_AT_ONCE = 200;

/** The tables of a backup, in the order in which they are restored. */
const tablesOf = (host: Pick<PartHost, "parts">) => host.parts.flatMap(({ tables }) => tables?.copied ?? []);

/** The index of a position after the last table. */
export const AFTER_TABLES = Number.MAX_SAFE_INTEGER;

/** Reads the rows of a caller after a position, and those of later tables. Secrets are copied as they are stored. */
export function readRows(
  host: Pick<PartHost, "sql" | "parts">,
  [caller, from, after]: CallerRowPosition,
): CallerRowPage {
  const tables = tablesOf(host);
  const rows: CallerRow[] = from === 0 && after === 0 ? [{ caller, table: BEGIN_TABLE, row: {} }] : [];
  let size = 0;
  for (let at = from, last = after; at < tables.length;) {
    const table = tables[at] as string;
    const statement = `SELECT rowid AS _at, * FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ${ROWS_AT_ONCE}`;
    const found = host.sql.all(statement, last);
    for (const { _at, ...row } of found) {
      rows.push({ caller, table, row });
      size += JSON.stringify(row).length;
      last = Number(_at);
    }
    if (found.length < ROWS_AT_ONCE) [at, last] = [at + 1, 0];
    if (size > PAGE_CHARACTERS && at < tables.length) return { rows, next: [caller, at, last] };
  }
  return { rows };
}

/** Writes rows of a caller in one transaction. The first of a backup clears the object. */
export function writeRows(
  host: Pick<PartHost, "sql" | "parts" | "clear">,
  rows: readonly CallerRow[],
  now: number,
): void {
  const tables = new Map(
    host.parts.flatMap(({ tables }) => tables?.copied.map((name) => [name, tables] as const) ?? []),
  );
  host.sql.transaction(() => {
    for (const line of rows) {
      if (line.table === BEGIN_TABLE) host.clear();
      else writeRow(host.sql, line, tables.get(line.table), now);
    }
  });
}

function writeRow(sql: ObjectSql, { table, row }: CallerRow, tables: PartTables | undefined, now: number): void {
  if (!tables) throw new Error(`A backup of a caller has no table ${table}.`);
  const columns = Object.keys(row);
  if (!columns.every((column) => /^\w+$/.test(column))) throw new Error(`${table} has no such columns.`);
  const restore = tables.restore?.[table];
  if (restore) {
    restore(row, now);
    return;
  }
  const marks = columns.map(() => "?").join(", ");
  sql.all(`INSERT OR REPLACE INTO ${table} (${columns.join(", ")}) VALUES (${marks})`, ...Object.values(row));
}
