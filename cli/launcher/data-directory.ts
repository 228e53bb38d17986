/** The launcher's files in the data directory of a stack: a lock, and a record of the stack's addresses. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Ports } from "../process/ports.ts";

/** The default data directory of a stack. */
export const DATA = ".resonate";

/** The files of jobs in a data directory. */
export const filesIn = (data: string): string => resolve(data, "files");
/** The storage of the edge's Durable Objects in a data directory. */
export const objectsIn = (data: string): string => join(data, "objects");
/** The embedded server's database in a data directory. */
export const databaseIn = (data: string): string => join(data, "resonate.db");
/** The file with the key that seals task ids in a data directory. */
export const taskKeyIn = (data: string): string => join(data, "task-key");

const RECORD_FILE = "launcher.json";
const LOCK_FILE = "launcher.lock";

/** How long to wait for a lock: another process may hold it briefly while it reads or exits. */
const LOCK_TIMEOUT_MS = 500;
const STATE_TIMEOUT_MS = 3_000;
const SQLITE_BUSY = 5;

/** The addresses of a stack during its current or last run. */
export interface StackRecord {
  ports: Partial<Ports>;
  url: string;
  resonateUrl: string;
  /** The embedded server's token, new for each run. */
  resonateToken?: string;
  workerUrl: string;
  /** The project's folder, if the stack was started in another one. */
  project?: string;
}

/** Open for the life of this process; the operating system releases the lock when the process ends. */
const locks = new Set<DatabaseSync>();

/**
 * Creates the directory if needed and locks it for this process.
 *
 * @throws {Error} that names the stack that uses the directory, or the reason why the directory cannot be used
 */
export function takeDirectory(dir: string): void {
  locks.add(lockDirectory(dir));
  if (isStateInUse(dir)) {
    throw new Error(
      `The state in ${dir} is in use by another Resonate server. Stop that one, or choose another directory with --data.`,
    );
  }
}

/** Locks the directory until the result is closed. @throws {Error} as {@link takeDirectory}, except for other servers */
export function lockDirectory(dir: string): DatabaseSync {
  let db: DatabaseSync | undefined;
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    db = lock(join(dir, LOCK_FILE));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new Error(
      `The state cannot be kept in ${dir} (${code?.startsWith("ERR_") ? message : code}). Choose another directory with --data.`,
      { cause: error },
    );
  }
  if (db) return db;
  const url = stackRecordIn(dir, false)?.url;
  throw new Error(
    `It runs already${url === undefined ? "" : ` at ${url}`}, with its state in ${dir}, unless a backup or restore uses that now.`,
  );
}

/** Records the stack's addresses for the next run, the doctor and the proxy. */
export function writeRecord(dir: string, record: StackRecord): void {
  const draft = join(dir, `${RECORD_FILE}.${process.pid}`);
  writeFileSync(draft, JSON.stringify(record), { mode: 0o600 });
  renameSync(draft, join(dir, RECORD_FILE));
}

/**
 * Reads the record of the directory's stack. With `searchesInside`, it falls back to the only subdirectory with a record: `wrap`
 * gives each server a subdirectory. Undefined if there is no readable record.
 */
export function stackRecordIn(dir: string, searchesInside = true): StackRecord | undefined {
  try {
    return JSON.parse(readFileSync(join(dir, RECORD_FILE), "utf8"));
  } catch {
    if (!searchesInside || !existsSync(dir)) return undefined;
    const records = readdirSync(dir).flatMap((name) => stackRecordIn(join(dir, name), false) ?? []);
    return records.length === 1 ? records[0] : undefined;
  }
}

/** The MCP endpoint of the stack on this machine. */
export const localEndpoint = (): string => stackRecordIn(DATA)?.url ?? "http://127.0.0.1:8787/mcp";

/** Locks a file through SQLite, since the operating system releases such a lock however the process ends. */
function lock(file: string): DatabaseSync | undefined {
  writeFileSync(file, "", { flag: "a", mode: 0o600 });
  const db = new DatabaseSync(file, { timeout: LOCK_TIMEOUT_MS });
  try {
    db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return db;
  } catch (error) {
    db.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
}

/** Whether an embedded server that was started without the launcher uses the state. */
function isStateInUse(dir: string): boolean {
  const file = databaseIn(dir);
  if (!existsSync(file)) return false;
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(file, { readOnly: true, timeout: STATE_TIMEOUT_MS });
    db.prepare("PRAGMA schema_version").get();
    return false;
  } catch (error) {
    return isBusy(error); // The server reports any other problem when it opens the file.
  } finally {
    db?.close();
  }
}

function isBusy(error: unknown): boolean {
  const { errcode } = error as { errcode?: number };
  // The lowest byte is SQLite's primary result code; the other bytes refine it.
  return errcode !== undefined && (errcode & 0xff) === SQLITE_BUSY;
}
