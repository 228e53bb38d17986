/** The server to back up or restore: a deployment's own, which is paused, or this machine's, which must be stopped. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BackupPosition, type BackupRow, isEmpty, readRows, writeRows } from "../../server/engine/backup.ts";
import { openDatabase, RESTORE_MARKER } from "../../server/node/database.ts";
import { NodeSql } from "../../server/node/node-sql.ts";
import { option, optionOr } from "../arguments.ts";
import { prebuiltEdge } from "../build/prebuilt-edge.ts";
import { DATA, databaseIn, lockDirectory, objectsIn, taskKeyIn } from "../launcher/data-directory.ts";
import { serveBundle } from "../launcher/local-edge.ts";
import { Cleanups } from "../process/cleanups.ts";
import { newToken } from "../static-token.ts";
import { FILES } from "../wrap/wrap-files.ts";
import { type BackupHead, batchesOf, type Line } from "./backup-file.ts";
import { OperatorClient, paged, Refused } from "./operator-client.ts";

export const SOURCE_OPTIONS = {
  url: option("URL", "the deployment; needs an operator's token in OPERATOR_TOKEN (npm run deploy -- --operator NAME)"),
  data: optionOr(
    DATA,
    "DIR",
    `without --url: the state of the embedded server (default ${DATA}), which must be stopped`,
  ),
};

/** A server that accepts no changes until this object is disposed of. */
interface PausedServer extends AsyncDisposable {
  readonly head: BackupHead;
  pages(): AsyncIterable<readonly Line[]>;
  /** Writes a backup to the server, and returns the number of rows. @throws {Error} if the server has jobs already */
  restore(head: BackupHead, rows: AsyncIterable<Line>): Promise<number>;
  /** Keeps the server paused after this object is disposed of, because its jobs have moved. */
  retire(): Promise<void>;
}

/** The address of an edge, or a data directory of this machine. */
interface ServerOptions {
  url?: string | undefined;
  data: string;
}

/** Opens a server. `restores`: a directory may have no state, or only a part. @throws {Error} otherwise */
export function openServer({ url, data }: ServerOptions, restores = false): Promise<PausedServer> {
  return url === undefined ? openFolder(data, restores) : openDeployment(new OperatorClient(url));
}

async function openDeployment(operator: OperatorClient): Promise<PausedServer> {
  await operator.ask("POST", "rest");
  let stays = false;
  return {
    head: await operator.ask("GET", "key"),
    async *pages() {
      yield* operator.rowPages();
      for await (const rows of operator.callerRowPages()) {
        yield rows;
        await operator.prolongPause();
      }
    },
    async restore({ key }, rows) {
      let count = 0;
      for await (const batch of batchesOf(rows)) {
        const own = batch.filter((line) => !("caller" in line));
        const callerRows = batch.filter((line) => "caller" in line);
        const isFirst = count === 0;
        // The first request also checks that there are no jobs, even if it has no rows.
        if (isFirst || own.length > 0) {
          const first: Record<string, string> = isFirst ? { first: "" } : {};
          // An interrupted restore leaves the server paused until the same command is repeated. Without an answer, these rows may
          // be written.
          stays = true;
          await operator.ask("POST", "rows", first, JSON.stringify(own)).catch((error) => {
            if (isFirst && error instanceof Refused) stays = false;
            throw error;
          });
        }
        if (callerRows.length > 0) await operator.putCallerRows(callerRows);
        count += batch.length;
      }
      if (key !== null) await operator.ask("POST", "key", {}, key);
      stays = false;
      return count;
    },
    async retire() {
      await operator.ask("POST", "rest", { forever: "" });
      stays = true;
    },
    async [Symbol.asyncDispose]() {
      if (!stays) await operator.ask("POST", "wake");
    },
  };
}

async function openFolder(data: string, restores: boolean): Promise<PausedServer> {
  if (!restores && !existsSync(databaseIn(data))) throw new Error(`There is no state in ${data}.`);
  await using opened = new Cleanups();
  // Both fail with an explanation if a stack runs. One whose Resonate server is elsewhere has only the second lock.
  const sql = new NodeSql(openDatabase(data, restores).db);
  opened.defer(() => sql.close());
  const lock = lockDirectory(data);
  opened.defer(() => lock.close());
  const keyFile = taskKeyIn(data);
  const key = existsSync(keyFile) ? await readFile(keyFile, "utf8") : null;
  const all = opened.move();
  return {
    head: { key },
    async *pages() {
      yield* paged<BackupRow, BackupPosition>(async (after) => readRows(sql, after));
      if (!existsSync(objectsIn(data))) return;
      await using made = new Cleanups();
      yield* (await openCallerRows(data, made)).callerRowPages();
    },
    async restore({ key }, rows) {
      const draft = join(data, RESTORE_MARKER);
      if (!isEmpty(sql) && !existsSync(draft)) throw new Error(`${data} has jobs already.`);
      let count = 0;
      await using made = new Cleanups();
      let callerRows: OperatorClient | undefined;
      for await (const batch of batchesOf(rows)) {
        await writeFile(draft, "");
        writeRows(sql, batch.filter((line) => !("caller" in line)) as BackupRow[]);
        const others = batch.filter((line) => "caller" in line);
        if (others.length > 0) {
          callerRows ??= await openCallerRows(data, made);
          await callerRows.putCallerRows(others);
        }
        count += batch.length;
      }
      if (key !== null) await writeFile(keyFile, key, { mode: 0o600 });
      await rm(draft, { force: true });
      return count;
    },
    // The server is stopped, and only its owner starts it again.
    async retire() {},
    [Symbol.asyncDispose]: () => all[Symbol.asyncDispose](),
  };
}

/** An address at which nothing listens, so that the objects put off the work that needs a Resonate server. */
const NOWHERE = "http://127.0.0.1:9";

/**
 * Opens the callers' objects of a data directory through a temporary edge, since only workerd can read their storage. No stack
 * may use the directory at the same time. `made` ends the edge.
 */
async function openCallerRows(data: string, made: Cleanups): Promise<OperatorClient> {
  const folder = await mkdtemp(join(tmpdir(), "caller-rows-"));
  made.defer(() => rm(folder, { recursive: true, force: true }));
  const server = { name: "caller-rows", version: "1.0.0" };
  await writeFile(join(folder, FILES.options), JSON.stringify({ name: "caller-rows", url: NOWHERE }));
  await writeFile(join(folder, FILES.snapshot), JSON.stringify({ server, revision: "", resources: false, tools: [] }));
  const { token, sha256 } = newToken();
  const bindings = {
    RESONATE_URL: NOWHERE,
    RESONATE_NAMESPACE: process.env.RESONATE_NAMESPACE ?? "",
    OPERATOR_TOKENS: JSON.stringify([{ name: "backup", sha256 }]),
    // With OAuth, subscriptions do not end because their caller's token is not configured here.
    AUTH_MODE: "oauth",
    OAUTH_ISSUER: "https://nowhere.invalid",
    ALLOWED_HOSTS: "127.0.0.1",
    TASK_KEY: randomBytes(32).toString("hex"),
    LOG_LEVEL: "error",
  };
  const bundle = await prebuiltEdge(folder);
  const { url } = made.use(await serveBundle(bundle, { port: 0, data: objectsIn(data), bindings }));
  return new OperatorClient(url, token);
}
