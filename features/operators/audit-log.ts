import type { AuditEntry } from "../../core/jobs/index.ts";
import type { ObjectSql } from "../../core/resonate/index.ts";
import { AUDITED_METHODS, type AuditPage } from "./calls.ts";

/** A caller's entry is dropped once so many entries of any kind, or so many of the same caller, follow it. */
const MAX_ENTRIES_AFTER_CALL = 100_000;
const MAX_CALLS_OF_ONE = 1_000;

/** How long an entry is kept, in milliseconds. */
const RETENTION_MS = 400 * 86_400_000;

export const AUDIT_TABLE = `CREATE TABLE audit (n INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER, who TEXT, what TEXT, about TEXT) STRICT;
  CREATE INDEX audit_who ON audit (who, what, n);`;

/** What operators and callers have done, in the operators' object. */
export class AuditLog {
  readonly #sql: ObjectSql;

  constructor(sql: ObjectSql) {
    this.#sql = sql;
  }

  /** Returns the number of the entry. */
  note(who: string, what: string, about: object): number {
    const [row] = this.#sql.all<{ n: number }>(
      "INSERT INTO audit (at, who, what, about) VALUES (?, ?, ?, ?) RETURNING n",
      Date.now(),
      who,
      what,
      JSON.stringify(about),
    );
    return row?.n ?? 0;
  }

  /** Notes a call of a caller. Only old entries of callers make room for it, first its own. */
  noteCall(caller: string, what: string, about: object): void {
    const n = this.note(caller, what, about);
    const names = AUDITED_METHODS.map(() => "?").join(", ");
    const old = [n - MAX_ENTRIES_AFTER_CALL, ...AUDITED_METHODS];
    this.#sql.all(`DELETE FROM audit WHERE n <= ? AND what IN (${names})`, ...old);
    const own =
      "DELETE FROM audit WHERE n <= (SELECT n FROM audit WHERE who = ? AND what = ? ORDER BY n DESC LIMIT 1 OFFSET ?) AND who = ? AND what = ?";
    this.#sql.all(own, caller, what, MAX_CALLS_OF_ONE, caller, what);
  }

  page({ before, after, limit = 100 }: AuditPage): AuditEntry[] {
    const [where, from] =
      after === undefined
        ? ["n < ? ORDER BY n DESC", before ?? Number.MAX_SAFE_INTEGER]
        : (["n > ? ORDER BY n", after] as const);
    return this.#sql
      .all<{ n: number; at: number; who: string; what: string; about: string }>(
        `SELECT * FROM audit WHERE ${where} LIMIT ?`,
        from,
        limit,
      )
      .map((row) => ({ ...row, at: new Date(row.at).toISOString(), about: JSON.parse(row.about) }));
  }

  /** Removes old entries. */
  prune(now: number): void {
    this.#sql.all("DELETE FROM audit WHERE at < ?", now - RETENTION_MS);
  }
}
