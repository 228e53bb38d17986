/** The format of a backup file: JSON lines. The first has the format's name and the key of task ids, the last the row count. */
import { createReadStream, existsSync } from "node:fs";
import { cp, mkdir, open, rename, rm } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { CallerRow } from "../../core/jobs/index.ts";
import { jsonOf } from "../../core/resonate/index.ts";
import type { BackupRow } from "../../server/engine/backup.ts";

const FORMAT = "durable-mcp-edge backup 1";

/** A row of the Resonate server, or of a caller's object. */
export type Line = BackupRow | CallerRow;

/** The fields of the first and the last line. */
interface FileLine {
  format: string;
  rows: number;
}

/** How many rows one request or transaction writes, and about how many characters. */
const BATCH = { rows: 200, characters: 1_000_000 };

export interface BackupHead {
  /** The key that seals the task ids of clients; null if the server had no key of its own. */
  key: string | null;
}

/** Writes a backup atomically, readable only by its owner. Returns the number of rows. */
export async function writeBackup(
  file: string,
  head: BackupHead,
  pages: AsyncIterable<readonly Line[]>,
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
    // A file without this last line is incomplete.
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

/** The folder, beside the backup of a data directory, for the files of its jobs. */
export const filesBeside = (backup: string): string => `${backup}.files`;

/** Copies a folder so that only its owner can read it. False if `from` does not exist. */
export async function copyFiles(from: string, to: string): Promise<boolean> {
  if (!existsSync(from)) return false;
  await mkdir(to, { recursive: true, mode: 0o700 });
  await cp(from, to, { recursive: true });
  return true;
}

/** Reads the first line. @throws {Error} if the file is no backup */
export async function readHead(file: string): Promise<BackupHead> {
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const head = jsonOf(line) as Partial<BackupHead & FileLine> | undefined;
    if (head?.format === FORMAT) return { key: head.key ?? null };
    break;
  }
  throw new Error(`${file} is not a backup of this product.`);
}

/** Reads the rows of a backup. @throws {Error} at its end, if it is incomplete */
export async function* readBackup(file: string): AsyncGenerator<Line> {
  let count = 0;
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })) {
    const read = jsonOf(line) as Partial<Line & FileLine> | undefined;
    if (read?.table !== undefined) {
      count += 1;
      yield read as Line;
    } else if (read?.rows !== undefined) {
      if (read.rows === count) return;
      break;
    } else if (read?.format !== FORMAT) break;
  }
  throw new Error(`${file} is incomplete.`);
}

/** Gathers rows for requests and transactions. */
export async function* batchesOf<Row>(rows: AsyncIterable<Row>): AsyncGenerator<Row[]> {
  let batch: Row[] = [];
  let size = 0;
  for await (const row of rows) {
    batch.push(row);
    size += JSON.stringify(row).length;
    if (batch.length < BATCH.rows && size < BATCH.characters) continue;
    yield batch;
    batch = [];
    size = 0;
  }
  if (batch.length > 0) yield batch;
}
