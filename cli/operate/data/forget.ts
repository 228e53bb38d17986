/** `forget CALLER`: removes a caller's data from a Resonate server. */
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { parseArgs } from "node:util";
import { keysOf } from "../../../core/author/index.ts";
import { startRecordEnd } from "../../../core/resonate/index.ts";
import { countPromisesOf, type Owner, removePromisesOf } from "../../../server/engine/callers.ts";
import { openDatabase } from "../../../server/node/database.ts";
import { NodeSql } from "../../../server/node/node-sql.ts";
import { flag, option, optionOr, usageOf, WrongArguments } from "../../arguments.ts";
import { OperatorClient } from "../../backup/operator-client.ts";
import { DATA, databaseIn } from "../../launcher/data-directory.ts";
import { print } from "../../terminal/print.ts";
import { BATCH_SIZE, checkPostgres, checkSqlite, outcome, quote, removal, removeSqlite } from "./database.ts";

const OPTIONS = {
  sqlite: option("FILE", "the file of a Resonate server 0.9.8; the server may run"),
  postgres: flag("writes a script for psql, as `retention` does"),
  data: option("DIR", `the state of the embedded server (${DATA}), which must be stopped`),
  url: option(
    "URL",
    "a deployment that keeps its jobs itself, which may run; needs an operator's token in OPERATOR_TOKEN",
  ),
  namespace: optionOr("", "NAME/", "the namespace of the deployment; not with --url"),
  apply: flag("remove them"),
};

export const usage = usageOf(
  "CALLER (--sqlite FILE | --postgres | --data DIR | --url URL) [--namespace NAME/] [--apply]",
  `Removes all jobs of a caller, including those under way, with their steps, results and progress feeds, the caller's list and
quota reservations, and the records of the shared jobs that the caller started; shared jobs stay. CALLER is the name of a
static token, or the name that the log gives to the caller of an OAuth token. Without --apply it only prints the count.`,
  OPTIONS,
);

/** An SQL condition for a caller's promises: ids that begin with its key, and its records about shared jobs. */
async function ownerCondition({ caller, namespace }: Owner): Promise<string> {
  const begins = (text: string) => `substr(id, 1, ${text.length}) = ${quote(text)}`;
  const ends = (text: string) => `substr(id, length(id) - ${text.length - 1}) = ${quote(text)}`;
  const parts = (await keysOf(caller)).map(
    (key) => `${begins(namespace + key)} OR (${begins(namespace)} AND ${ends(startRecordEnd(key))})`,
  );
  return parts.join(" OR ");
}

const selection = (condition: string) =>
  `CREATE TEMP TABLE forgotten AS SELECT id, row_number() OVER (ORDER BY id) AS n FROM promises WHERE ${condition}`;

/**
 * Removes a caller's promises in a database, or only counts them; returns their number. `source`: the file of a standalone
 * server, or a data directory of the embedded one.
 *
 * @throws {Error} for an unknown schema, or if the embedded server runs
 */
export async function forget(
  owner: Owner,
  source: { sqlite?: string; data?: string },
  apply: boolean,
): Promise<number> {
  const { sqlite, data = DATA } = source;
  const file = sqlite ?? databaseIn(data);
  if (!existsSync(file)) throw new Error(`There is no ${file}.`);
  return sqlite === undefined ? forgetEmbedded(data, owner, apply) : forgetStandalone(sqlite, owner, apply);
}

async function forgetEmbedded(data: string, owner: Owner, apply: boolean): Promise<number> {
  const { db } = openDatabase(data);
  try {
    const sql = new NodeSql(db);
    return apply ? await sumOf(() => removePromisesOf(sql, owner, BATCH_SIZE)) : await countPromisesOf(sql, owner);
  } finally {
    db.close();
  }
}

async function forgetStandalone(file: string, owner: Owner, apply: boolean): Promise<number> {
  const db = new DatabaseSync(file, { enableForeignKeyConstraints: true });
  try {
    checkSqlite(db, file);
    db.exec(selection(await ownerCondition(owner)));
    const { count } = db.prepare("SELECT count(*) AS count FROM forgotten").get() as { count: number };
    if (apply) removeSqlite(db, "forgotten");
    return count;
  } finally {
    db.close();
  }
}

/** Removes or counts through the operator's API of a deployment. */
async function forgetDeployed(operator: OperatorClient, caller: string, apply: boolean): Promise<number> {
  const step = async (): Promise<number> => (await operator.ask(apply ? "POST" : "GET", "caller", { caller })).count;
  const count = await (apply ? sumOf(step) : step());
  if (apply) await operator.ask("DELETE", "/operate/callers", { caller });
  return count;
}

/** Repeats `step` until it returns 0, and sums its results. */
async function sumOf(step: () => Promise<number>): Promise<number> {
  let sum = 0;
  for (let count = await step(); count > 0; count = await step()) sum += count;
  return sum;
}

/** Does the same as {@link forget} for Postgres, as a script for `psql`. */
export async function postgresScript(owner: Owner, apply: boolean): Promise<string> {
  return `${checkPostgres()}
${selection(await ownerCondition(owner))};
SELECT count(*) AS promises FROM forgotten;
${apply ? removal("forgotten") : ""}
${outcome(apply)}
`;
}

export async function run(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: OPTIONS });
  const { namespace, apply, sqlite, postgres, data, url } = values;
  const [caller, ...rest] = positionals;
  if (caller === undefined || rest.length > 0) throw new WrongArguments("Name one caller.");
  if ([sqlite, postgres || undefined, data, url].filter((source) => source !== undefined).length !== 1)
    throw new WrongArguments("One of --sqlite, --postgres, --data and --url says where the jobs are.");
  if (url !== undefined && namespace !== "") throw new WrongArguments("The deployment knows its own namespace.");
  const owner = { caller, namespace };
  if (postgres) return print(await postgresScript(owner, apply));
  const count = await (url === undefined
    ? forget(owner, values, apply)
    : forgetDeployed(new OperatorClient(url), caller, apply));
  print(`${count} promises ${apply ? "were removed." : "of this caller: nothing was removed. Add --apply."}`);
}
