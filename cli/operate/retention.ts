/** `retention`: removes jobs that ended long ago from the database of a real Resonate server, whose protocol deletes nothing. */
import { DatabaseSync } from "node:sqlite";
import { parseArgs } from "node:util";
import { KEEP } from "../../core/store/codec.ts";
import { CHILD, GENERATION } from "../../core/store/ids.ts";
import { SUPPORTED_RELEASE } from "../../core/store/support.ts";
import { readProject, typed } from "../project.ts";
import { aidsOver, prepareAids } from "./aids.ts";
import { checkPostgres, checkSqlite, quote } from "./database.ts";

const DAY = 86_400_000;

/** How many jobs are removed in one transaction. */
const BATCH = 500;

/** What is to be kept: `days` since the end of a job, unless its definition says otherwise, in `namespace`. */
interface Wanted {
  days: number;
  namespace: string;
  now: number;
}

/**
 * A table of the promises of the jobs that are over: all generations of a name together, with what is below them, numbered
 * by job. A job is what is dispatched to workers.
 */
function selection({ days, namespace, now }: Wanted, dialect: "sqlite" | "postgres"): string {
  const isLite = dialect === "sqlite";
  const before = (text: string, mark: string) =>
    isLite ? `substr(${text}, 1, instr(${text} || '${mark}', '${mark}') - 1)` : `split_part(${text}, '${mark}', 1)`;
  const keep = isLite ? `json_extract(tags, '$."${KEEP}"')` : `tags->>'${KEEP}'`;
  const number = isLite ? "INTEGER" : "BIGINT";
  const end = `settled_at + CASE WHEN ${keep} IS NULL THEN ${Math.round(days * DAY)} ELSE CAST(${keep} AS ${number}) END`;
  const isOver = `CASE WHEN settled_at IS NULL OR ${keep} = 'forever' THEN 0 WHEN ${end} <= ${now} THEN 1 ELSE 0 END`;
  return `CREATE TEMP TABLE jobs_over AS
    WITH roots AS (
      SELECT id, ${before("id", GENERATION)} AS name, target, ${isOver} AS is_over
      FROM promises WHERE id = ${before("id", CHILD)} AND substr(id, 1, ${namespace.length}) = ${quote(namespace)}
    ), names AS (
      SELECT name FROM roots GROUP BY name
      HAVING min(is_over) = 1 AND max(CASE WHEN id = name AND target IS NOT NULL THEN 1 ELSE 0 END) = 1
    )
    SELECT promises.id AS id, dense_rank() OVER (ORDER BY names.name) AS n
    FROM promises JOIN names ON names.name = ${before(`(${before("promises.id", CHILD)})`, GENERATION)}`;
}

const COUNTS = `SELECT (SELECT coalesce(max(n), 0) FROM jobs_over) AS jobs, (SELECT count(*) FROM jobs_over) AS promises,
  (SELECT count(*) FROM aids_over) AS aids`;

/** Removes what is over from a file of SQLite, or only counts it. @throws {Error} for a schema that is not known */
export function retainSqlite(file: string, wanted: Wanted, apply: boolean) {
  const db = new DatabaseSync(file, { readOnly: false, enableForeignKeyConstraints: true });
  try {
    checkSqlite(db, file);
    db.exec(selection(wanted, "sqlite"));
    prepareAids(db);
    db.exec(aidsOver(wanted, "sqlite"));
    const { jobs, promises, aids } = db.prepare(COUNTS).get() as { jobs: number; promises: number; aids: number };
    for (const [table, count] of apply
      ? ([
          ["jobs_over", jobs],
          ["aids_over", aids],
        ] as const)
      : []) {
      db.exec(`CREATE INDEX temp.${table}_n ON ${table} (n)`);
      const remove = db.prepare(`DELETE FROM promises WHERE id IN (SELECT id FROM ${table} WHERE n > ? AND n <= ?)`);
      for (let n = 0; n < count; n += BATCH) remove.run(n, n + BATCH);
    }
    return { jobs, promises, aids };
  } finally {
    db.close();
  }
}

const removed = (table: string) => `DO $$ DECLARE last BIGINT := (SELECT coalesce(max(n), 0) FROM ${table}); BEGIN
  FOR n0 IN 0..greatest(last - 1, 0) BY ${BATCH} LOOP
    DELETE FROM promises WHERE id IN (SELECT id FROM ${table} WHERE n > n0 AND n <= n0 + ${BATCH});
    COMMIT;
  END LOOP;
END $$;`;

/** The same for Postgres, as a script for `psql`. */
export function postgresScript(wanted: Wanted, apply: boolean): string {
  const removal = `${["jobs_over", "aids_over"].map(removed).join("\n")}
\\echo removed`;
  return `${checkPostgres()}
${selection(wanted, "postgres")};
CREATE INDEX ON jobs_over (n);
CREATE INDEX ON jobs_over (id);
${aidsOver(wanted, "postgres")};
CREATE INDEX ON aids_over (n);
${COUNTS};
${apply ? removal : "\\echo nothing was removed: this is what --apply would remove"}
`;
}

export async function run(args: string[]): Promise<void> {
  const usage = `Usage: ${typed(readProject(), "retention", "--days DAYS (--sqlite FILE | --postgres) [--namespace NAME/] [--apply]")}

Removes jobs that ended longer than DAYS ago from the database of a Resonate server ${SUPPORTED_RELEASE}: each with its steps, its journal
and all generations of its name, ${BATCH} jobs at a time, and what had counted, limited and listed jobs. Without --apply it only says how many that would be.

  --sqlite FILE      the server's file; the server may run
  --postgres         writes a script for psql:  … --postgres | docker compose -f infra/compose.yaml exec -T postgres psql -U resonate resonate
  --namespace NAME/  only jobs whose promises begin with it`;
  const { values } = parseArgs({
    args,
    options: {
      days: { type: "string" },
      sqlite: { type: "string" },
      postgres: { type: "boolean", default: false },
      namespace: { type: "string", default: "" },
      apply: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return console.log(usage);
  const days = Number(values.days);
  if (!(days > 0) || (values.sqlite === undefined) !== values.postgres) {
    console.error(usage);
    process.exit(2);
  }
  const wanted = { days, namespace: values.namespace, now: Date.now() };
  if (values.sqlite === undefined) return console.log(postgresScript(wanted, values.apply));
  const { jobs, promises, aids } = retainSqlite(values.sqlite, wanted, values.apply);
  const what = `${jobs} jobs (${promises} promises) and ${aids} of what counted, limited and listed jobs`;
  console.log(`${what}${values.apply ? " were removed." : ": nothing was removed. Add --apply."}`);
}
