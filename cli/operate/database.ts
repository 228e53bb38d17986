/** The database of a real Resonate server, as far as operators' commands touch it: they know one schema, and no other. */
import type { DatabaseSync } from "node:sqlite";
import { SUPPORTED_RELEASE } from "../../core/store/support.ts";

/** What it has to look like: the tables that what belongs to a promise is in, and go with it. */
const COLUMNS = {
  promises:
    "branch,created_at,id,origin,param_data,param_headers,settled_at,state,tags,target,timeout_at,timer,value_data,value_headers",
  tasks: "id,state,version",
  callbacks: "awaited_id,awaiter_id,ready",
  listeners: "address,promise_id",
};

/** A text as SQL has it. */
export const quote = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** @throws {Error} for a schema that is not known */
export function checkSqlite(db: DatabaseSync, file: string): void {
  db.exec("PRAGMA busy_timeout = 5000");
  for (const [table, columns] of Object.entries(COLUMNS)) {
    const found = db.prepare(`SELECT name FROM pragma_table_xinfo(${quote(table)}) ORDER BY name`).all();
    if (found.map(({ name }) => name).join(",") !== columns) {
      throw new Error(
        `${file} is no database of the Resonate server ${SUPPORTED_RELEASE}: its table ${table} differs.`,
      );
    }
  }
}

/** The beginning of a script for `psql`, which ends it where the schema is not known. */
export function checkPostgres(): string {
  const checks = Object.entries(COLUMNS).map(
    ([
      table,
      columns,
    ]) => `  IF (SELECT string_agg(column_name, ',' ORDER BY column_name COLLATE "C") FROM information_schema.columns
      WHERE table_schema = current_schema() AND table_name = '${table}') IS DISTINCT FROM '${columns}'
  THEN RAISE EXCEPTION 'this is no database of the Resonate server ${SUPPORTED_RELEASE}: its table ${table} differs'; END IF;`,
  );
  return `\\set ON_ERROR_STOP on
\\set QUIET on
DO $$ BEGIN
${checks.join("\n")}
END $$;`;
}
