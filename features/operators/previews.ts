/** The jobs that operators' filters have found, for actions on exactly these. */
import type { Filter } from "../../core/jobs/index.ts";
import type { ObjectSql } from "../../core/resonate/index.ts";

/** How long a preview is kept, in milliseconds, and how many are. */
const RETENTION_MS = 3_600_000;
const MAX_PREVIEWS = 20;

export const PREVIEW_TABLE =
  "CREATE TABLE previews (n INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER, filter TEXT, jobs TEXT) STRICT;";

export class Previews {
  readonly #sql: ObjectSql;

  constructor(sql: ObjectSql) {
    this.#sql = sql;
  }

  /** Stores the jobs of a filter; returns the number of the preview. */
  add(filter: Filter, jobs: readonly string[], now: number): number {
    const [row] = this.#sql.all<{ n: number }>(
      "INSERT INTO previews (at, filter, jobs) VALUES (?, ?, ?) RETURNING n",
      ...[now, JSON.stringify(filter), JSON.stringify(jobs)],
    );
    const n = row?.n ?? 0;
    this.#sql.all("DELETE FROM previews WHERE n <= ? OR at < ?", n - MAX_PREVIEWS, now - RETENTION_MS);
    return n;
  }

  get(n: number, now: number): { filter: Filter; jobs: string[] } | undefined {
    const [row] = this.#sql.all<{ filter: string; jobs: string }>(
      "SELECT filter, jobs FROM previews WHERE n = ? AND at >= ?",
      ...[n, now - RETENTION_MS],
    );
    return row && { filter: JSON.parse(row.filter), jobs: JSON.parse(row.jobs) };
  }
}
