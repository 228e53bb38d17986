/** `forget CALLER`: removes what a caller's jobs have left, from the database of a Resonate server. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parseArgs } from "node:util";
import { openDatabase } from "../../server/node/database.ts";
import { NodeSql } from "../../server/node/node-sql.ts";
import { countOf, forgetSome, keysOf, type Owner, sharedBy } from "../../server/wire/callers.ts";
import { readArguments } from "../arguments.ts";
import { OperatorClient } from "../backup/operator.ts";
import { DATA } from "../launcher/start-options.ts";
import { readProject, typed } from "../project.ts";
import { checkPostgres, checkSqlite, quote } from "./database.ts";

const usage =
  () => `Usage: ${typed(readProject(), "forget", "CALLER (--sqlite FILE | --postgres | --data DIR | --url URL) [--namespace NAME/] [--apply]")}

Removes all jobs of a caller, those under way as well, with their steps, results and journals, the caller's list and places,
and the records that it started jobs which callers share; those jobs stay. CALLER is the name of a static token, or what the
log calls the caller of an OAuth token. Without --apply it only says how much that would be.

  --sqlite FILE      the file of a Resonate server 0.9.8; the server may run
  --postgres         writes a script for psql, as \`retention\` does
  --data DIR         the state of the embedded server (${DATA}), which has to be stopped
  --url URL          a deployment that keeps its jobs itself, which may run; its operator's token in OPERATOR_TOKEN
  --namespace NAME/  that of the deployment; one with --url knows its own
`;

/** How many promises are removed in one transaction. */
const BATCH = 500;

/** What is a caller's, by its id: what begins with its key, and the records of what it started that is shared. */
async function condition({ caller, namespace }: Owner): Promise<string> {
  const begins = (text: string) => `substr(id, 1, ${text.length}) = ${quote(text)}`;
  const ends = (text: string) => `substr(id, length(id) - ${text.length - 1}) = ${quote(text)}`;
  const parts = (await keysOf(caller)).map(
    (key) => `${begins(namespace + key)} OR (${begins(namespace)} AND ${ends(sharedBy(key))})`,
  );
  return parts.join(" OR ");
}

const selection = (where: string) =>
  `CREATE TEMP TABLE forgotten AS SELECT id, row_number() OVER (ORDER BY id) AS n FROM promises WHERE ${where}`;

/** Whose data is removed, or only counted, and from where: a file of the real server, or a directory of the embedded one. */
interface Wanted extends Owner {
  place: { sqlite: string } | { data: string };
  apply: boolean;
}

/**
 * Removes what is a caller's from a database, or only counts it. Returns how many promises.
 *
 * @throws {Error} for a schema that is not known, and when the embedded server runs
 */
export async function forget({ place, apply, ...owner }: Wanted): Promise<number> {
  const isEmbedded = "data" in place;
  const file = isEmbedded ? join(place.data, "resonate.db") : place.sqlite;
  if (!existsSync(file)) throw new Error(`There is no ${file}.`);
  return isEmbedded ? forgetEmbedded(place.data, owner, apply) : forgetReal(file, owner, apply);
}

async function forgetEmbedded(data: string, owner: Owner, apply: boolean): Promise<number> {
  const { db } = openDatabase(data);
  try {
    const sql = new NodeSql(db);
    return apply ? await sumOf(() => forgetSome(sql, owner, BATCH)) : await countOf(sql, owner);
  } finally {
    db.close();
  }
}

async function forgetReal(file: string, owner: Owner, apply: boolean): Promise<number> {
  const db = new DatabaseSync(file, { enableForeignKeyConstraints: true });
  try {
    checkSqlite(db, file);
    db.exec(selection(await condition(owner)));
    const { count } = db.prepare("SELECT count(*) AS count FROM forgotten").get() as { count: number };
    const remove = db.prepare("DELETE FROM promises WHERE id IN (SELECT id FROM forgotten WHERE n > ? AND n <= ?)");
    for (let n = 0; apply && n < count; n += BATCH) remove.run(n, n + BATCH);
    return count;
  } finally {
    db.close();
  }
}

/** What a deployment keeps itself. */
async function forgetDeployed(operator: OperatorClient, caller: string, apply: boolean): Promise<number> {
  const some = async (): Promise<number> => (await operator.ask(apply ? "POST" : "GET", "caller", { caller })).count;
  return apply ? sumOf(some) : some();
}

/** What `some` says each time until there is no more. */
async function sumOf(some: () => Promise<number>): Promise<number> {
  let sum = 0;
  for (let count = await some(); count > 0; count = await some()) sum += count;
  return sum;
}

/** The same for Postgres, as a script for `psql`. */
export async function postgresScript(owner: Owner, apply: boolean): Promise<string> {
  const removal = `DO $$ DECLARE last BIGINT := (SELECT count(*) FROM forgotten); BEGIN
  FOR n0 IN 0..greatest(last - 1, 0) BY ${BATCH} LOOP
    DELETE FROM promises WHERE id IN (SELECT id FROM forgotten WHERE n > n0 AND n <= n0 + ${BATCH});
    COMMIT;
  END LOOP;
END $$;
\\echo removed`;
  return `${checkPostgres()}
${selection(await condition(owner))};
SELECT count(*) AS promises FROM forgotten;
${apply ? removal : "\\echo nothing was removed: this is what --apply would remove"}
`;
}

export async function run(args: string[]): Promise<void> {
  const read = () => {
    const elsewhere = { data: { type: "string" }, url: { type: "string" } } as const;
    const places = { sqlite: { type: "string" }, postgres: { type: "boolean" }, ...elsewhere } as const;
    const others = { namespace: { type: "string", default: "" }, apply: { type: "boolean", default: false } } as const;
    const options = { ...places, ...others, help: { type: "boolean" } } as const;
    const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
    if (values.help) return undefined;
    const [caller, ...rest] = positionals;
    if (caller === undefined || rest.length > 0) throw new Error("Name one caller.");
    const given = [values.sqlite, values.postgres, values.data, values.url].filter((place) => place !== undefined);
    if (given.length !== 1) throw new Error("One of --sqlite, --postgres, --data and --url says where the jobs are.");
    if (values.url !== undefined && values.namespace !== "") throw new Error("The deployment knows its own namespace.");
    return { ...values, caller };
  };
  const options = readArguments(read, usage());
  if (!options) return;
  const { caller, namespace, apply, sqlite, data, url } = options;
  const owner = { caller, namespace };
  if (options.postgres) return console.log(await postgresScript(owner, apply));
  const place = sqlite !== undefined ? { sqlite } : { data: data ?? DATA };
  const count = await (url === undefined
    ? forget({ ...owner, place, apply })
    : forgetDeployed(new OperatorClient(url), caller, apply));
  console.log(`${count} promises ${apply ? "were removed." : "of this caller: nothing was removed. Add --apply."}`);
}
