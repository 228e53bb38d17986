/** The servers that a backup is of: the one of an account, and the one of this machine, which is not running then. */
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type BackupRow, isEmpty, type BackupPosition as Place, readRows, writeRows } from "../../server/backup.ts";
import { openDatabase } from "../../server/node/database.ts";
import { NodeSql } from "../../server/node/node-sql.ts";
import type { BackupHead } from "./backup-file.ts";
import { OperatorClient } from "./operator.ts";

/** Rows that are written at once. */
const BATCH = 200;

/** A server that rests for as long as this is open: nobody changes what is read. */
export interface RestingServer extends AsyncDisposable {
  readonly head: BackupHead;
  pages(): AsyncIterable<readonly BackupRow[]>;
  /** Takes up a backup. @throws {Error} when the server has jobs already */
  restore(head: BackupHead, rows: AsyncIterable<BackupRow>): Promise<number>;
  /** Has it rest for good: its jobs are elsewhere. */
  retire(): Promise<void>;
}

/** Which server it is: the address of an edge, or a folder of this machine. */
export interface ServerOptions {
  url?: string | undefined;
  data: string;
}

export function openServer({ url, data }: ServerOptions): Promise<RestingServer> {
  return url === undefined ? openFolder(data) : openDeployment(new OperatorClient(url));
}

async function openDeployment(operator: OperatorClient): Promise<RestingServer> {
  await operator.ask("POST", "rest");
  let isRetired = false;
  const head: BackupHead = await operator.ask("GET", "key");
  return {
    head,
    async *pages() {
      let after: Place | undefined;
      do {
        const { rows, next } = await operator.rows(after);
        yield rows;
        after = next;
      } while (after);
    },
    async restore({ key }, rows) {
      let count = 0;
      for await (const batch of batches(rows)) {
        const first: Record<string, string> = count === 0 ? { first: "" } : {};
        await operator.ask("POST", "rows", first, JSON.stringify(batch));
        count += batch.length;
      }
      if (key !== null) await operator.ask("POST", "key", {}, key);
      return count;
    },
    async retire() {
      await operator.ask("POST", "rest", { forever: "" });
      isRetired = true;
    },
    async [Symbol.asyncDispose]() {
      if (!isRetired) await operator.ask("POST", "wake");
    },
  };
}

async function openFolder(data: string): Promise<RestingServer> {
  // Nobody else has it: the lock of a running server is told in words.
  const { db } = openDatabase(data);
  const sql = new NodeSql(db);
  const keyFile = join(data, "task-key");
  return {
    head: { key: existsSync(keyFile) ? await readFile(keyFile, "utf8") : null },
    async *pages() {
      let after: Place | undefined;
      do {
        const { rows, next } = readRows(sql, after);
        yield rows;
        after = next;
      } while (after);
    },
    async restore({ key }, rows) {
      if (!isEmpty(sql)) throw new Error(`${data} has jobs already.`);
      let count = 0;
      for await (const batch of batches(rows)) {
        writeRows(sql, batch);
        count += batch.length;
      }
      if (key !== null) await writeFile(keyFile, key, { mode: 0o600 });
      return count;
    },
    // It is not running, and who starts it again means it.
    async retire() {},
    async [Symbol.asyncDispose]() {
      sql.close();
    },
  };
}

async function* batches(rows: AsyncIterable<BackupRow>): AsyncGenerator<BackupRow[]> {
  let batch: BackupRow[] = [];
  let size = 0;
  for await (const row of rows) {
    batch.push(row);
    size += JSON.stringify(row).length;
    if (batch.length < BATCH && size < 1_000_000) continue;
    yield batch;
    batch = [];
    size = 0;
  }
  if (batch.length > 0) yield batch;
}
