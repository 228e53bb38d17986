/** `forget CALLER`: removes what a caller's jobs have left, from the database of a Resonate server. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parseArgs } from "node:util";
import { callerOf } from "../../core/jobs/caller.ts";
import { DATA } from "../launcher/options.ts";
import { readProject, typed } from "../launcher/project.ts";
import { openDatabase } from "../resonate/node/database.ts";
import { readArguments } from "./arguments.ts";
import { checkPostgres, checkSqlite, quote } from "./database.ts";

const usage =
  () => `Usage: ${typed(readProject(), "forget", "CALLER (--sqlite FILE | --postgres | --data DIR) [--namespace NAME/] [--apply]")}

Removes all jobs of a caller, those under way as well, with their steps, results and journals, the caller's list and places,
and the records that it started jobs which callers share; those jobs stay. CALLER is the name of a static token, or what the
log calls the caller of an OAuth token. Without --apply it only says how much that would be.

  --sqlite FILE      the file of a Resonate server 0.9.8; the server may run
  --postgres         writes a script for psql, as \`retention\` does
  --data DIR         the state of the embedded server (${DATA}), which has to be stopped
  --namespace NAME/  that of the deployment
`;

/** How many promises are removed in one transaction. */
const BATCH = 500;

/** What is a caller's, by its id: what begins with its key, and the records of what it started that is shared. */
function condition(key: string, namespace: string): string {
  const own = namespace + key;
  const shared = `substr(id, length(id) - ${key.length + 1}) = ${quote(`:r${key}`)}`;
  return `substr(id, 1, ${own.length}) = ${quote(own)} OR (substr(id, 1, ${namespace.length}) = ${quote(namespace)} AND ${shared})`;
}

/** The log names an OAuth caller by the hash that its key is made of; the name of a token may look like one. */
async function conditions(caller: string, namespace: string): Promise<string> {
  const keys = [(await callerOf(caller)).key, ...(/^[\w-]{16}$/.test(caller) ? [`c${caller}.`] : [])];
  return keys.map((key) => condition(key, namespace)).join(" OR ");
}

/** The embedded server's tables, by the column that names the promise; those of 0.9.8 go with the promise. */
const EMBEDDED = ["callbacks WHERE awaited", "listeners WHERE promise", "tasks WHERE id", "promises WHERE id"];
const REAL = ["promises WHERE id"];

const selection = (where: string) =>
  `CREATE TEMP TABLE forgotten AS SELECT id, row_number() OVER (ORDER BY id) AS n FROM promises WHERE ${where}`;

/** Whose data is removed, of which namespace, and from where: a file of the real server, or a directory of the embedded one. */
interface Wanted {
  caller: string;
  namespace: string;
  place: { sqlite: string } | { data: string };
  apply: boolean;
}

/**
 * Removes what is a caller's from a database, or only counts it. Returns how many promises.
 *
 * @throws {Error} for a schema that is not known, and when the embedded server runs
 */
export async function forget({ caller, namespace, place, apply }: Wanted): Promise<number> {
  const isEmbedded = "data" in place;
  const file = isEmbedded ? join(place.data, "resonate.db") : place.sqlite;
  if (!existsSync(file)) throw new Error(`There is no ${file}.`);
  const db = isEmbedded ? openDatabase(place.data).db : new DatabaseSync(file, { enableForeignKeyConstraints: true });
  try {
    if (!isEmbedded) checkSqlite(db, file);
    db.exec(selection(await conditions(caller, namespace)));
    const { count } = db.prepare("SELECT count(*) AS count FROM forgotten").get() as { count: number };
    for (let n = 0; apply && n < count; n += BATCH) {
      const some = `SELECT id FROM forgotten WHERE n > ${n} AND n <= ${n + BATCH}`;
      db.exec("BEGIN IMMEDIATE");
      for (const table of isEmbedded ? EMBEDDED : REAL) db.exec(`DELETE FROM ${table} IN (${some})`);
      db.exec("COMMIT");
    }
    return count;
  } finally {
    db.close();
  }
}

/** The same for Postgres, as a script for `psql`. */
export async function postgresScript(caller: string, namespace: string, apply: boolean): Promise<string> {
  const removal = `DO $$ DECLARE last BIGINT := (SELECT count(*) FROM forgotten); BEGIN
  FOR n0 IN 0..greatest(last - 1, 0) BY ${BATCH} LOOP
    DELETE FROM promises WHERE id IN (SELECT id FROM forgotten WHERE n > n0 AND n <= n0 + ${BATCH});
    COMMIT;
  END LOOP;
END $$;
\\echo removed`;
  return `${checkPostgres()}
${selection(await conditions(caller, namespace))};
SELECT count(*) AS promises FROM forgotten;
${apply ? removal : "\\echo nothing was removed: this is what --apply would remove"}
`;
}

export async function run(args: string[]): Promise<void> {
  const read = () => {
    const places = { sqlite: { type: "string" }, postgres: { type: "boolean" }, data: { type: "string" } } as const;
    const others = { namespace: { type: "string", default: "" }, apply: { type: "boolean", default: false } } as const;
    const options = { ...places, ...others, help: { type: "boolean" } } as const;
    const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
    if (values.help) return undefined;
    const [caller, ...rest] = positionals;
    if (caller === undefined || rest.length > 0) throw new Error("Name one caller.");
    const given = [values.sqlite, values.postgres, values.data].filter((place) => place !== undefined);
    if (given.length !== 1) throw new Error("One of --sqlite, --postgres and --data says where the jobs are.");
    return { ...values, caller };
  };
  const options = readArguments(read, usage());
  if (!options) return;
  const { caller, namespace, apply, sqlite, data } = options;
  const place = sqlite !== undefined ? { sqlite } : data !== undefined ? { data } : undefined;
  if (!place) return console.log(await postgresScript(caller, namespace, apply));
  const count = await forget({ caller, namespace, place, apply });
  console.log(`${count} promises ${apply ? "were removed." : "of this caller: nothing was removed. Add --apply."}`);
}
