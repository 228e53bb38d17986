/** The list of the callers' objects, in an object of its own: a backup reads them all. */
import type { CallerRow, CallerRowPage, CallerRowPosition, ObjectPart } from "../../core/jobs/index.ts";
import type { ObjectSql, SqlValue } from "../../core/resonate/index.ts";
import { AFTER_TABLES, PAGE_CHARACTERS } from "./caller-rows.ts";
import type { BackupMethods } from "./object.ts";

/** How many callers are listed at once, and read for one answer. */
const CALLERS_AT_ONCE = 50;

/** The remote methods of the object that lists the callers' objects. */
export interface CallerListMethods {
  add(key: string): Promise<void>;
  /** Reads the callers' rows from a position on, about {@link PAGE_CHARACTERS}. */
  read(after: CallerRowPosition | undefined): Promise<CallerRowPage>;
  /** Writes rows back, those of a caller together. */
  write(rows: readonly CallerRow[]): Promise<void>;
  /** Removes everything that is stored for a caller. */
  forget(key: string): Promise<void>;
}

/** `of`: the methods of a caller's object, by the caller's key. */
export class CallerList implements ObjectPart {
  readonly name = "backup";
  readonly tables = { version: 1, statements: ["CREATE TABLE callers (key TEXT PRIMARY KEY) STRICT"], copied: [] };
  readonly #sql: ObjectSql;
  readonly #of: (key: string) => BackupMethods;

  constructor(sql: ObjectSql, of: (key: string) => BackupMethods) {
    this.#sql = sql;
    this.#of = of;
  }

  readonly methods: { [Name in keyof CallerListMethods]: CallerListMethods[Name] } = {
    add: async (key) => this.#add(key),
    read: (after) => this.#read(after),
    write: (rows) => this.#write(rows),
    forget: async (key) => {
      await this.#of(key).clear();
      this.#sql.all("DELETE FROM callers WHERE key = ?", key);
    },
  };

  #add(key: string): void {
    this.#sql.all("INSERT OR IGNORE INTO callers VALUES (?)", key);
  }

  async #read(after: CallerRowPosition | undefined): Promise<CallerRowPage> {
    const rows: CallerRow[] = [];
    const others = after ? this.#list("key > ?", after[0]) : this.#list("1");
    const keys = after ? [after[0], ...others] : others;
    let size = 0;
    for (const [n, key] of keys.entries()) {
      const [, table, row] = after && n === 0 ? after : [key, 0, 0];
      const page = await this.#of(key).readRows(key, table, row);
      for (const one of page.rows) rows.push(one);
      if (page.next) return { rows, next: page.next };
      size += JSON.stringify(page.rows).length;
      const isMore = n + 1 < keys.length || others.length === CALLERS_AT_ONCE;
      if (isMore && (size > PAGE_CHARACTERS || n + 1 === keys.length)) return { rows, next: [key, AFTER_TABLES, 0] };
    }
    return { rows };
  }

  async #write(rows: readonly CallerRow[]): Promise<void> {
    for (const [key, own] of Map.groupBy(rows, ({ caller }) => caller)) {
      this.#add(key);
      await this.#of(key).writeRows(own);
    }
  }

  #list(where: string, ...values: SqlValue[]): string[] {
    const statement = `SELECT key FROM callers WHERE ${where} ORDER BY key LIMIT ${CALLERS_AT_ONCE}`;
    return this.#sql.all(statement, ...values).map(({ key }) => String(key));
  }
}
