/** The server that is backed up or restored: a deployment's own, which pauses, or this machine's, which is stopped. */
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type BackupRow, isEmpty, type BackupPosition as Place, readRows, writeRows } from "../../server/backup.ts";
import { openDatabase } from "../../server/node/database.ts";
import { NodeSql } from "../../server/node/node-sql.ts";
import type { BackupHead } from "./backup-file.ts";
import { OperatorClient } from "./operator-client.ts";

/** How many rows one request or transaction writes. */
const BATCH = 200;

/** A server that accepts no changes while this is open. */
export interface PausedServer extends AsyncDisposable {
  readonly head: BackupHead;
  pages(): AsyncIterable<readonly BackupRow[]>;
  /** Writes a backup to the server. @throws {Error} if it has jobs already */
  restore(head: BackupHead, rows: AsyncIterable<BackupRow>): Promise<number>;
  /** Keeps it paused after this is closed: its jobs have moved. */
  retire(): Promise<void>;
}

/** The address of an edge, or a data directory of this machine. */
export interface ServerOptions {
  url?: string | undefined;
  data: string;
}

export function openServer({ url, data }: ServerOptions): Promise<PausedServer> {
  return url === undefined ? openFolder(data) : openDeployment(new OperatorClient(url));
}

async function openDeployment(operator: OperatorClient): Promise<PausedServer> {
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

async function openFolder(data: string): Promise<PausedServer> {
  // Fails with an explanation if a running server has the lock.
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
    // It is stopped, and is only started again on purpose.
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
