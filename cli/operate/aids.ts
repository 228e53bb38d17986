/** What counts, limits and lists jobs in the database of a real Resonate server, and is of no use any more. */
import type { DatabaseSync } from "node:sqlite";
import { ENTRY } from "../../core/store/codec.ts";
import { chainLink, isBookkeepingSql, isLimitSql, isReservationOver, POSTGRES_PATTERNS } from "../../core/store/ids.ts";
import { BOOKKEEPING_RETENTION } from "../../core/store/sequence.ts";
import { quote } from "./database.ts";

/** What the ids tell, in SQL of each server; SQLite has no regular expressions, but functions. */
const PARTS = {
  sqlite: { chain: "chain_of(id)", link: "link_of(id)", isPlaceOver: (now: number) => `is_place_over(id, ${now})` },
  postgres: {
    chain: `substring(id from '${POSTGRES_PATTERNS.chain}')`,
    link: `CAST(substring(id from '${POSTGRES_PATTERNS.link}') AS BIGINT)`,
    isPlaceOver: (now: number) =>
      `(CAST(substring(id from '${POSTGRES_PATTERNS.quotaPeriod}') AS BIGINT) + 1)
          * CAST(substring(id from '${POSTGRES_PATTERNS.quotaHours}') AS BIGINT) * 3600000 <= ${now}`,
  },
};

/** Makes the functions that the table of {@link aidsOver} needs. */
export function prepareAids(db: DatabaseSync): void {
  db.function("chain_of", { deterministic: true }, (id) => chainLink(String(id))?.chain ?? null);
  db.function("link_of", { deterministic: true }, (id) => chainLink(String(id))?.n ?? null);
  db.function("is_place_over", (id, now) => Number(isReservationOver(String(id), Number(now))));
}

/**
 * A numbered table, `aids_over`, of what goes: by the rules of `server/engine/retention.ts`. A job that is in the table
 * `jobs_over` counts as gone.
 */
export function aidsOver({ namespace, now }: { namespace: string; now: number }, dialect: keyof typeof PARTS): string {
  const { chain, link, isPlaceOver } = PARTS[dialect];
  const entry = dialect === "sqlite" ? `json_extract(tags, '$."${ENTRY}"')` : `tags->>'${ENTRY}'`;
  const position = dialect === "sqlite" ? "instr" : "strpos";
  return `CREATE TEMP TABLE aids_over AS
    WITH aids AS (
      SELECT id, settled_at, ${entry} AS entry, ${chain} AS chain, ${link} AS link FROM promises
      WHERE substr(id, 1, ${namespace.length}) = ${quote(namespace)} AND (${isBookkeepingSql(position)})
    ), ends AS (
      SELECT chain, max(link) AS last FROM aids WHERE chain IS NOT NULL GROUP BY chain
    ), links AS (
      SELECT aids.*, last, link - (link & -link) AS before FROM aids JOIN ends ON ends.chain = aids.chain
    ), gone AS (
      SELECT id FROM aids WHERE chain IS NULL AND settled_at <= ${now - BOOKKEEPING_RETENTION} AND ${isPlaceOver(now)}
      UNION ALL
      SELECT id FROM links
      WHERE settled_at <= ${now - BOOKKEEPING_RETENTION} AND link <> last
        AND CASE WHEN before = 0 THEN 0 WHEN before = last - last % (before & -before) THEN 0 ELSE 1 END = 1
        AND (${isLimitSql(position)} OR (entry IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM promises job WHERE job.id = entry AND job.id NOT IN (SELECT id FROM jobs_over))))
    )
    SELECT id, row_number() OVER (ORDER BY id) AS n FROM gone`;
}
