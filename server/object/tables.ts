import { ENDED, SCHEMA } from "../engine/schema.ts";
import type { Sql } from "../engine/sql.ts";

/** Of the tables. Raise with every change of them; such a change may only add what earlier code does not notice. */
const VERSION = 2;
/** The earliest version of the code that goes on with these tables: a deployment can be rolled back to it. */
const SERVES = 1;

/** What the object remembers of itself: the tables' version, the key, when it looks for what is old, which instance serves. */
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
 * Makes the tables where there are none, and brings those of earlier versions up to date.
 *
 * @throws {Error} when a later version has changed them so that this one must not use them
 */
export function openTables(sql: Sql): Notes {
  const notes = new Notes(sql);
  sql.transaction(() => {
    sql.run("CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID");
    const version = Number(notes.get("version") ?? 0);
    const serves = Number(notes.get("serves") ?? 0);
    if (serves > VERSION) {
      throw new Error(`These tables are of version ${version}, which needs a later version of the code than this one.`);
    }
    if (version >= VERSION) return;
    const missing = (version === 0 ? SCHEMA : "") + ENDED;
    for (const statement of statementsOf(missing)) sql.run(statement);
    notes.set("version", String(VERSION));
    notes.set("serves", String(SERVES));
  });
  return notes;
}

const statementsOf = (text: string) => text.split(";").filter((statement) => statement.trim() !== "");
