/** Selects expired quota reservations, limit links and list entries in the database of a standalone Resonate server. */
import type { DatabaseSync } from "node:sqlite";
import { ENTRY } from "../../core/store/codec.ts";
import { chainLink, isBookkeepingSql, isLimitSql, isReservationOver, POSTGRES_PATTERNS } from "../../core/store/ids.ts";
import { BOOKKEEPING_RETENTION } from "../../core/store/sequence.ts";
import { quote } from "./data/database.ts";

/** SQL that takes ids apart: SQLite has no regular expressions, but user-defined functions. */
const ID_PARTS = {
  sqlite: { chain: "chain_of(id)", link: "link_of(id)", isPeriodOver: (now: number) => `is_period_over(id, ${now})` },
  postgres: {
    chain: `substring(id from '${POSTGRES_PATTERNS.chain}')`,
    link: `CAST(substring(id from '${POSTGRES_PATTERNS.link}') AS BIGINT)`,
    isPeriodOver: (now: number) =>
      `(CAST(substring(id from '${POSTGRES_PATTERNS.quotaPeriod}') AS BIGINT) + 1)
          * CAST(substring(id from '${POSTGRES_PATTERNS.quotaHours}') AS BIGINT) * 3600000 <= ${now}`,
  },
};

/** Defines the functions that {@link expiredBookkeeping} uses. */
export function defineIdFunctions(db: DatabaseSync): void {
  db.function("chain_of", { deterministic: true }, (id) => chainLink(String(id))?.chain ?? null);
  db.function("link_of", { deterministic: true }, (id) => chainLink(String(id))?.n ?? null);
  db.function("is_period_over", (id, now) => Number(isReservationOver(String(id), Number(now))));
}

/**
 * Creates the numbered table `expired_bookkeeping`, by the rules of `server/engine/retention.ts`. Jobs in the table
 * `expired_jobs` count as removed.
 */
export function expiredBookkeeping(
  { namespace, now }: { namespace: string; now: number },
  dialect: keyof typeof ID_PARTS,
): string {
  const { chain, link, isPeriodOver } = ID_PARTS[dialect];
  const entry = dialect === "sqlite" ? `json_extract(tags, '$."${ENTRY}"')` : `tags->>'${ENTRY}'`;
  const position = dialect === "sqlite" ? "instr" : "strpos";
  return `CREATE TEMP TABLE expired_bookkeeping AS
    WITH bookkeeping AS (
      SELECT id, settled_at, ${entry} AS entry, ${chain} AS chain, ${link} AS link FROM promises
      WHERE substr(id, 1, ${namespace.length}) = ${quote(namespace)} AND (${isBookkeepingSql(position)})
    ), ends AS (
      SELECT chain, max(link) AS last FROM bookkeeping WHERE chain IS NOT NULL GROUP BY chain
    ), links AS (
      SELECT bookkeeping.*, last, link - (link & -link) AS before FROM bookkeeping JOIN ends ON ends.chain = bookkeeping.chain
    ), gone AS (
      SELECT id FROM bookkeeping WHERE chain IS NULL AND settled_at <= ${now - BOOKKEEPING_RETENTION} AND ${isPeriodOver(now)}
      UNION ALL
      SELECT id FROM links
      WHERE settled_at <= ${now - BOOKKEEPING_RETENTION} AND link <> last
        AND CASE WHEN before = 0 THEN 0 WHEN before = last - last % (before & -before) THEN 0 ELSE 1 END = 1
        AND (${isLimitSql(position)} OR (entry IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM promises job WHERE job.id = entry AND job.id NOT IN (SELECT id FROM expired_jobs))))
    )
    SELECT id, row_number() OVER (ORDER BY id) AS n FROM gone`;
}
