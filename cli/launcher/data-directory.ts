/** What the launcher keeps beside the state of a stack: a lock, and where the stack of this directory is. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Ports } from "../process/ports.ts";

const RECORD = "launcher.json";
const LOCK = "launcher.lock";
const STATE = "resonate.db";

/** How long another process may take to let go of a lock, in milliseconds: one that just looks, one that is ending. */
const PATIENCE = { lock: 500, state: 3_000 };
const SQLITE_BUSY = 5;

/** Where the stack of a data directory is, or was when it last ran. */
export interface StackRecord {
  ports: Partial<Ports>;
  /** The MCP endpoint. */
  url: string;
  resonateUrl: string;
  /** What the embedded server asks for: made anew for each run. */
  resonateToken?: string;
  /** The worker's `/health`. */
  workerUrl: string;
  /** The folder of its project, where that is not the one that it was started in. */
  project?: string;
}

/** Held for as long as this process lives: the lock is the operating system's, and goes with it. */
let held: DatabaseSync | undefined;

/**
 * Takes the directory for this process, and makes it when it is missing.
 *
 * @throws {Error} saying what uses it already, or why it cannot be used
 */
export function takeDirectory(dir: string): void {
  held = openDirectory(dir);
  if (held === undefined) {
    const url = recordOf(dir)?.url;
    throw new Error(`It runs already${url === undefined ? "" : ` at ${url}`}, with its state in ${dir}.`);
  }
  if (isStateInUse(dir)) {
    throw new Error(
      `The state in ${dir} is in use by another Resonate server. Stop that one, or choose another directory with --data.`,
    );
  }
}

function openDirectory(dir: string): DatabaseSync | undefined {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    return lock(join(dir, LOCK));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new Error(
      `The state cannot be kept in ${dir} (${code?.startsWith("ERR_") ? message : code}). Choose another directory with --data.`,
      { cause: error },
    );
  }
}

/** Keeps where the stack is, for the next run, for the doctor and for the proxy. */
export function writeRecord(dir: string, record: StackRecord): void {
  const draft = join(dir, `${RECORD}.${process.pid}`);
  writeFileSync(draft, JSON.stringify(record), { mode: 0o600 });
  renameSync(draft, join(dir, RECORD));
}

/** What is known of the directory's stack; undefined when none has run there, or its record is unreadable. */
export function recordOf(dir: string): StackRecord | undefined {
  try {
    return JSON.parse(readFileSync(join(dir, RECORD), "utf8"));
  } catch {
    return undefined;
  }
}

/** SQLite's lock of a file is released however its process ends, which no file with a process id in it can say of itself. */
function lock(file: string): DatabaseSync | undefined {
  writeFileSync(file, "", { flag: "a", mode: 0o600 });
  const db = new DatabaseSync(file, { timeout: PATIENCE.lock });
  try {
    db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return db;
  } catch (error) {
    db.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
}

/** Whether an embedded server has the state that no launcher of this version started. */
function isStateInUse(dir: string): boolean {
  const file = join(dir, STATE);
  if (!existsSync(file)) return false;
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(file, { readOnly: true, timeout: PATIENCE.state });
    db.prepare("PRAGMA schema_version").get();
    return false;
  } catch (error) {
    return isBusy(error); // Whatever else is wrong with it, the server says when it opens it.
  } finally {
    db?.close();
  }
}

function isBusy(error: unknown): boolean {
  const { errcode } = error as { errcode?: number };
  // The lowest byte is SQLite's primary result code; the rest refines it.
  return errcode !== undefined && (errcode & 0xff) === SQLITE_BUSY;
}
