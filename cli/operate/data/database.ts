/** Checks the database of a standalone Resonate server. The operator's commands know one version of its schema. */
import type { DatabaseSync } from "node:sqlite";
import { SUPPORTED_RELEASE } from "../../../core/resonate/index.ts";

/** The expected columns of the tables from which promises are removed. */
const EXPECTED_COLUMNS = {
  promises:
    "branch,created_at,id,origin,param_data,param_headers,settled_at,state,tags,target,timeout_at,timer,value_data,value_headers",
  tasks: "id,state,version",
  callbacks: "awaited_id,awaiter_id,ready",
  listeners: "address,promise_id",
};

export const quote = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** @throws {Error} for an unknown schema */
export function checkSqlite(db: DatabaseSync, file: string): void {
  db.exec("PRAGMA busy_timeout = 5000");
  for (const [table, columns] of Object.entries(EXPECTED_COLUMNS)) {
    const rows = db.prepare(`SELECT name FROM pragma_table_xinfo(${quote(table)}) ORDER BY name`).all();
    if (rows.map(({ name }) => name).join(",") !== columns) {
      throw new Error(
        `${file} is not a database of the Resonate server ${SUPPORTED_RELEASE}: its table ${table} differs.`,
      );
    }
  }
}

/** The beginning of a script for `psql`, which aborts the script for an unknown schema. */
export function checkPostgres(): string {
  const checks = Object.entries(EXPECTED_COLUMNS).map(([table, columns]) => {
    const present = `(SELECT string_agg(column_name, ',' ORDER BY column_name COLLATE "C") FROM information_schema.columns
      WHERE table_schema = current_schema() AND table_name = '${table}')`;
    const message = `this is not a database of the Resonate server ${SUPPORTED_RELEASE}: its table ${table} differs`;
    return `  IF ${present} IS DISTINCT FROM '${columns}' THEN RAISE EXCEPTION '${message}'; END IF;`;
  });
  return `\\set ON_ERROR_STOP on
\\set QUIET on
DO $$ BEGIN
${checks.join("\n")}
END $$;`;
}

/** How many numbered jobs or promises one transaction removes. */
export const BATCH_SIZE = 500;

/** One batch of a removal: first forgets the rows for which the condition `isKept` has come true. */
const batch = (table: string, after: number | string, isKept: string): string => {
  const range = `n > ${after} AND n <= ${after} + ${BATCH_SIZE}`;
  return `DELETE FROM ${table} WHERE ${range} AND ${isKept};
    DELETE FROM promises WHERE id IN (SELECT id FROM ${table} WHERE ${range});`;
};

/** Removes the promises whose ids `table` lists, except those for which the SQL condition `isKept` is true by then. */
export function removeSqlite(db: DatabaseSync, table: string, isKept = "FALSE"): void {
  db.exec(`CREATE INDEX temp.${table}_n ON ${table} (n)`);
  const { last } = db.prepare(`SELECT coalesce(max(n), 0) AS last FROM ${table}`).get() as { last: number };
  for (let n = 0; n < last; n += BATCH_SIZE) db.exec(`BEGIN IMMEDIATE; ${batch(table, n, isKept)} COMMIT`);
}

/** Does the same as {@link removeSqlite}, as a part of a script for `psql`. */
export function removal(table: string, isKept = "FALSE"): string {
  return `DO $$ DECLARE last BIGINT := (SELECT coalesce(max(n), 0) FROM ${table}); BEGIN
  FOR n0 IN 0..greatest(last - 1, 0) BY ${BATCH_SIZE} LOOP
    ${batch(table, "n0", isKept)}
    COMMIT;
  END LOOP;
END $$;`;
}

/** The end of such a script: it says whether promises were removed. */
export const outcome = (apply: boolean): string =>
  `\\echo ${apply ? "removed" : "nothing was removed: this is what --apply would remove"}`;
