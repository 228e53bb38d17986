import { SCHEMA } from "../engine/schema.ts";
import type { Sql } from "../engine/sql.ts";

/** The version of the tables. Raise it with each change of the tables. */
const VERSION = 2;
/** The earliest version of the code that may use these tables: a deployment can be rolled back to it. */
const SERVES = 1;

/**
 * The object's own settings, by name: the tables' version, the key, the time of the next sweep, the instance that serves
 * streams. A Durable Object allows neither of SQLite's version pragmas.
 */
export class Notes {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  get(name: string): string | undefined {
    return this.#sql.all("SELECT value FROM notes WHERE name = ?", name)[0]?.value as string | undefined;
  }

  set(name: string, value: string): void {
    this.#sql.run(
      "INSERT INTO notes VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      name,
      value,
    );
  }
}

/**
 * Opens the tables, and creates them in a new object.
 *
 * @throws {Error} when their version is too new or too old for this code
 */
export function openTables(sql: Sql): Notes {
  const notes = new Notes(sql);
  sql.transaction(() => {
    sql.run("CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID");
    const version = Number(notes.get("version") ?? 0);
    if (Number(notes.get("serves") ?? 0) > VERSION) {
      throw new Error(
        `The Resonate object's tables have schema version ${version}, which this version of durable-mcp-edge cannot read: deploy the version that wrote them, or a later one (docs/operations.md).`,
      );
    }
    if (version >= VERSION) return;
    if (version > 0)
      throw new Error(`The Resonate object's tables have schema version ${version}: deploy commit 1c007cb first.`);
    for (const statement of SCHEMA.split(";")) if (statement.trim() !== "") sql.run(statement);
    notes.set("version", String(VERSION));
    notes.set("serves", String(SERVES));
  });
  return notes;
}
