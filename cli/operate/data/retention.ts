/** `retention`: removes old jobs from the database of a standalone Resonate server, whose protocol has no deletion. */
import { DatabaseSync } from "node:sqlite";
import { parseArgs } from "node:util";
import {
  BOOKKEEPING_RETENTION,
  CHILD_SEPARATOR,
  chainLink,
  cleanUpId,
  GENERATION_SEPARATOR,
  isLimitSql,
  POSTGRES_PATTERNS,
  RETENTION_TAG,
  SUPPORTED_RELEASE,
} from "../../../core/resonate/index.ts";
import { flag, option, optionOr, usageOf, WrongArguments } from "../../arguments.ts";
import { print } from "../../terminal/print.ts";
import { BATCH_SIZE, checkPostgres, checkSqlite, outcome, quote, removal, removeSqlite } from "./database.ts";

const DAY_MS = 86_400_000;

/** Jobs of `namespace` are kept for `days` after their end, unless their definition says otherwise. */
interface Retention {
  days: number;
  namespace: string;
  now: number;
}

/**
 * Creates the table `expired_jobs` with the promises of expired jobs, numbered by job. All generations of a name expire
 * together, with their child promises, and not before their clean-ups have ended. A promise with a target is a job. `next` is the
 * id that the name's next generation would have.
 */
function selection({ days, namespace, now }: Retention, dialect: "sqlite" | "postgres"): string {
  const isLite = dialect === "sqlite";
  const before = (text: string, mark: string) =>
    isLite ? `substr(${text}, 1, instr(${text} || '${mark}', '${mark}') - 1)` : `split_part(${text}, '${mark}', 1)`;
  const keep = isLite ? `json_extract(tags, '$."${RETENTION_TAG}"')` : `tags->>'${RETENTION_TAG}'`;
  const number = isLite ? "INTEGER" : "BIGINT";
  const end = `settled_at + CASE WHEN ${keep} IS NULL THEN ${Math.round(days * DAY_MS)} ELSE CAST(${keep} AS ${number}) END`;
  const isOver = `CASE WHEN settled_at IS NULL OR ${keep} = 'forever' THEN 0 WHEN ${end} <= ${now} THEN 1 ELSE 0 END`;
  const name = (id: string) => before(`(${before(id, CHILD_SEPARATOR)})`, GENERATION_SEPARATOR);
  return `CREATE TEMP TABLE expired_jobs AS
    WITH roots AS (
      SELECT id, ${before("id", GENERATION_SEPARATOR)} AS name, target, ${isOver} AS is_over
      FROM promises WHERE id = ${before("id", CHILD_SEPARATOR)} AND substr(id, 1, ${namespace.length}) = ${quote(namespace)}
    ), cleaned AS (
      SELECT ${name("id")} AS name FROM promises WHERE settled_at IS NULL AND id LIKE '%${cleanUpId("")}'
    ), names AS (
      SELECT name, name || '${GENERATION_SEPARATOR}' || (count(*) + 1) AS next FROM roots
      WHERE name NOT IN (SELECT name FROM cleaned) GROUP BY name
      HAVING min(is_over) = 1 AND max(CASE WHEN id = name AND target IS NOT NULL THEN 1 ELSE 0 END) = 1
    )
    SELECT promises.id AS id, next, dense_rank() OVER (ORDER BY names.name) AS n
    FROM promises JOIN names ON names.name = ${name("promises.id")}`;
}

/**
 * Whether a job was started again since the selection. It is kept then: without its first generation, the next start of its name
 * would not find the running one.
 */
const RESTART_CONDITION = "EXISTS (SELECT 1 FROM promises WHERE promises.id = expired_jobs.next)";

const COUNTS_QUERY = `SELECT (SELECT count(DISTINCT n) FROM expired_jobs) AS jobs, (SELECT count(*) FROM expired_jobs) AS promises,
  (SELECT count(*) FROM expired_bookkeeping) AS bookkeeping`;

/** Removes or counts expired jobs in an SQLite file. @throws {Error} for an unknown schema */
export function retainSqlite(file: string, retention: Retention, apply: boolean) {
  const db = new DatabaseSync(file, { readOnly: false, enableForeignKeyConstraints: true });
  try {
    checkSqlite(db, file);
    db.exec(selection(retention, "sqlite"));
    if (apply) removeSqlite(db, "expired_jobs", RESTART_CONDITION);
    defineIdFunctions(db);
    db.exec(expiredBookkeeping(retention, "sqlite"));
    if (apply) removeSqlite(db, "expired_bookkeeping");
    return db.prepare(COUNTS_QUERY).get() as { jobs: number; promises: number; bookkeeping: number };
  } finally {
    db.close();
  }
}

/** Does the same as {@link retainSqlite} for Postgres, as a script for `psql`. */
export function postgresScript(retention: Retention, apply: boolean): string {
  return `${checkPostgres()}
${selection(retention, "postgres")};
CREATE INDEX ON expired_jobs (n);
CREATE INDEX ON expired_jobs (id);
${apply ? removal("expired_jobs", RESTART_CONDITION) : ""}
${expiredBookkeeping(retention, "postgres")};
CREATE INDEX ON expired_bookkeeping (n);
${COUNTS_QUERY};
${apply ? removal("expired_bookkeeping") : ""}
${outcome(apply)}
`;
}

const OPTIONS = {
  days: option("DAYS", "how long ago jobs ended that are removed"),
  sqlite: option("FILE", "the server's file; the server may run"),
  postgres: flag(
    "writes a script for psql:  … --postgres | docker compose -f infra/compose.yaml exec -T postgres psql -U resonate resonate",
  ),
  namespace: optionOr("", "NAME/", "only jobs whose promises begin with it"),
  apply: flag("remove them"),
};

export const usage = usageOf(
  "--days DAYS (--sqlite FILE | --postgres) [--namespace NAME/] [--apply]",
  `Removes jobs that ended more than DAYS ago from the database of a Resonate server ${SUPPORTED_RELEASE}, ${BATCH_SIZE} jobs at a time: each with its
steps, its progress feed and all generations of its name. Also removes records that limited jobs.
Without --apply it only prints the counts.`,
  OPTIONS,
);

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const days = Number(values.days);
  if (!(days > 0) || (values.sqlite === undefined) !== values.postgres)
    throw new WrongArguments("Give --days, a number above 0, and --sqlite FILE or --postgres.");
  const retention = { days, namespace: values.namespace, now: Date.now() };
  if (values.sqlite === undefined) return print(postgresScript(retention, values.apply));
  const { jobs, promises, bookkeeping } = retainSqlite(values.sqlite, retention, values.apply);
  const what = `${jobs} jobs (${promises} promises) and ${bookkeeping} records that limited jobs`;
  print(`${what}${values.apply ? " were removed." : ": nothing was removed. Add --apply."}`);
}

/** SQL that extracts the parts of ids. SQLite has no regular expressions, but user-defined functions. */
const ID_PARTS = {
  sqlite: { chain: "chain_of(id)", link: "link_of(id)" },
  postgres: {
    chain: `substring(id from '${POSTGRES_PATTERNS.chain}')`,
    link: `CAST(substring(id from '${POSTGRES_PATTERNS.link}') AS BIGINT)`,
  },
};

/** Defines the functions that {@link expiredBookkeeping} uses. */
function defineIdFunctions(db: DatabaseSync): void {
  db.function("chain_of", { deterministic: true }, (id) => chainLink(String(id))?.chain ?? null);
  db.function("link_of", { deterministic: true }, (id) => chainLink(String(id))?.n ?? null);
}

/**
 * Creates the numbered table `expired_bookkeeping` by the rules of `server/engine/retention.ts`.
 */
function expiredBookkeeping({ namespace, now }: Retention, dialect: keyof typeof ID_PARTS): string {
  const { chain, link } = ID_PARTS[dialect];
  const position = dialect === "sqlite" ? "instr" : "strpos";
  return `CREATE TEMP TABLE expired_bookkeeping AS
    WITH bookkeeping AS (
      SELECT id, settled_at, ${chain} AS chain, ${link} AS link FROM promises
      WHERE substr(id, 1, ${namespace.length}) = ${quote(namespace)} AND ${isLimitSql(position)}
    ), ends AS (
      SELECT chain, max(link) AS last FROM bookkeeping WHERE chain IS NOT NULL GROUP BY chain
    ), links AS (
      SELECT bookkeeping.*, last, link - (link & -link) AS before FROM bookkeeping JOIN ends ON ends.chain = bookkeeping.chain
    )
    SELECT id, row_number() OVER (ORDER BY id) AS n FROM links
    WHERE settled_at <= ${now - BOOKKEEPING_RETENTION} AND link <> last
      AND CASE WHEN before = 0 THEN 0 WHEN before = last - last % (before & -before) THEN 0 ELSE 1 END = 1`;
}
