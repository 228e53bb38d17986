/** A backup as a file: JSON lines, first what it is and the key that seals task ids, then a row each. */
import { createReadStream } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { BackupRow } from "../../server/backup.ts";

const FORMAT = "durable-mcp-edge backup 1";

/** What is in a backup beside the rows. */
export interface BackupHead {
  /** Seals the ids of tasks that clients hold; null where the server had none of its own. */
  key: string | null;
}

/** Writes a backup, whole or not at all, which its owner alone may read. Returns how many rows there are. */
export async function writeBackup(
  file: string,
  head: BackupHead,
  pages: AsyncIterable<readonly BackupRow[]>,
): Promise<number> {
  const draft = `${file}.part`;
  const to = await open(draft, "w", 0o600);
  let count = 0;
  try {
    await to.write(`${JSON.stringify({ format: FORMAT, ...head })}\n`);
    for await (const rows of pages) {
      count += rows.length;
      await to.write(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    }
    // Its last line: without it, a file is not whole.
    await to.write(`${JSON.stringify({ rows: count })}\n`);
    await to.sync();
    await to.close();
    await rename(draft, file);
  } catch (error) {
    await to.close().catch(() => {});
    await rm(draft, { force: true });
    throw error;
  }
  return count;
}

/** Reads what stands before the rows. @throws {Error} for what is no backup */
export async function readHead(file: string): Promise<BackupHead> {
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const head = parsed(line);
    if (head?.format === FORMAT) return { key: head.key ?? null };
    break;
  }
  throw new Error(`${file} is no backup of this product.`);
}

/** The rows of a backup. @throws {Error} at its end, when it is not whole */
export async function* readBackup(file: string): AsyncGenerator<BackupRow> {
  let count = 0;
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })) {
    const read = parsed(line);
    if (read?.table !== undefined) {
      count += 1;
      yield read;
    } else if (read?.rows !== undefined) {
      if (read.rows === count) return;
      break;
    } else if (read?.format !== FORMAT) break;
  }
  throw new Error(`${file} is not whole.`);
}

function parsed(line: string) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
