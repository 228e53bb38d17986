/** Opens the state file of the embedded Resonate server, or explains why it cannot. */
import { chmodSync, existsSync, linkSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SCHEMA_VERSION, TABLES } from "../engine/schema.ts";

/** Stands for the name of the state file if the state is in memory only. */
export const IN_MEMORY = ":memory:";

const STATE_FILE = "resonate.db";
/** The default directory, which belongs to this program alone: its mode may be changed. */
const DEFAULT_DIRECTORY = ".resonate";
/** Only the owner may read the state: it holds the jobs' arguments and results. */
const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;
/** Marks the file as ours (SQLite's `application_id`): "DMCE". */
const APPLICATION_ID = 0x444d4345;

/** The largest file that is checked completely for damage when it is opened: 64 MiB take about 0.1 s. */
const MAX_CHECKED_FILE_BYTES = 64 * 1024 * 1024;

/** The server cannot start. The message says why, to the person who started it. */
export class StartError extends Error {}

/** The file that a directory has while a backup is restored into it. */
export const RESTORE_MARKER = "restoring";

/**
 * Opens the database in `dir`, and creates both if they are missing; in memory if `dir` is undefined. `isRestore`: to restore a
 * backup.
 *
 * @throws {StartError} if another server uses the directory, a restore into it has not finished, or the file is damaged, not
 *   ours or of another version
 */
export function openDatabase(dir: string | undefined, isRestore = false): { db: DatabaseSync; file: string } {
  if (dir === undefined) {
    const db = new DatabaseSync(IN_MEMORY);
    createSchema(db);
    return { db, file: IN_MEMORY };
  }
  if (!isRestore && existsSync(join(dir, RESTORE_MARKER)))
    throw new StartError(
      `A restore into ${dir} has not finished. Repeat it, or choose another directory with --data. If jobs have run there since, remove ${join(dir, RESTORE_MARKER)} instead.`,
    );
  const file = join(resolve(dir), STATE_FILE);
  let db: DatabaseSync | undefined;
  try {
    mkdirSync(resolve(dir), { recursive: true, mode: DIRECTORY_MODE });
    if (basename(resolve(dir)) === DEFAULT_DIRECTORY) chmodSync(resolve(dir), DIRECTORY_MODE);
    if (!existsSync(file)) create(file);
    // Files that were copied here may have another mode; SQLite gives a new log the mode of its database.
    for (const path of [file, `${file}-wal`, `${file}-shm`]) if (existsSync(path)) chmodSync(path, FILE_MODE);
    if (statSync(file).size === 0) throw damageError(file, "it is empty");
    db = new DatabaseSync(file);
    // The operating system holds the lock and releases it when the process exits, even by a crash.
    db.exec("PRAGMA locking_mode = EXCLUSIVE");
    check(db, file);
    // FULL makes a commit wait until the write-ahead log is on the disk.
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 16777216");
    // A request's savepoint keeps the pages that it changes; in a temporary file, that would sometimes wait for the disk.
    db.exec("PRAGMA temp_store = MEMORY");
    // Takes the write lock now; the exclusive mode keeps it until the database is closed.
    db.exec("BEGIN IMMEDIATE; COMMIT");
    return { db, file };
  } catch (error) {
    db?.close();
    throw explain(error, file, resolve(dir));
  }
}

/**
 * Builds the new database under another name and links it to its final name when it is complete. A file called
 * `resonate.db` thus always has a schema, and an empty one is damaged rather than new.
 */
function create(file: string): void {
  if (existsSync(`${file}-wal`)) {
    throw new StartError(
      `${file} is missing but its write-ahead log ${file}-wal is there. Put ${STATE_FILE} back beside it, or, to start with an empty state, move the log away.`,
    );
  }
  const draft = `${file}.${process.pid}.new`;
  rmSync(draft, { force: true });
  writeFileSync(draft, "", { mode: FILE_MODE });
  const db = new DatabaseSync(draft);
  createSchema(db);
  db.close();
  try {
    linkSync(draft, file);
  } catch (error) {
    // Another server has created the file; the lock decides which of the two servers may use it.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft);
  }
}

function createSchema(db: DatabaseSync): void {
  db.exec(
    `BEGIN; ${TABLES.join(";")}; PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT;`,
  );
}

function check(db: DatabaseSync, file: string): void {
  const { application_id } = db.prepare("PRAGMA application_id").get() as { application_id: number };
  const { user_version } = db.prepare("PRAGMA user_version").get() as { user_version: number };
  if (application_id !== APPLICATION_ID) {
    throw new StartError(
      `${file} is not a state file of this server. Move it away to start with an empty state, or choose another directory with --data.`,
    );
  }
  if (user_version !== SCHEMA_VERSION) {
    throw new StartError(
      `${file} has schema version ${user_version}, this server needs ${SCHEMA_VERSION}. Another version of durable-mcp-edge wrote it: start that version again, or restore a backup that this version made (docs/operations.md). To start with an empty state, move the file away.`,
    );
  }
  // Reading a larger file at each start would take too long. SQLite itself notices at once that a file was truncated.
  if (statSync(file).size > MAX_CHECKED_FILE_BYTES) return;
  const { quick_check } = db.prepare("PRAGMA quick_check(1)").get() as { quick_check: string };
  if (quick_check !== "ok") throw damageError(file, quick_check);
}

function damageError(file: string, reason: string): StartError {
  return new StartError(
    `${file} is damaged (${reason}). Restore it from a backup, or move it and its -wal file away to start with an empty state.`,
  );
}

function explain(error: unknown, file: string, dir: string): unknown {
  if (error instanceof StartError || !(error instanceof Error)) return error;
  const { errcode } = error as { errcode?: number };
  // The lowest byte is SQLite's primary result code; the other bytes refine it.
  switch (errcode === undefined ? undefined : errcode & 0xff) {
    case SQLITE_BUSY:
      return new StartError(
        `The data directory ${dir} is in use by another Resonate server. Stop that one, or choose another directory with --data.`,
      );
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return damageError(file, error.message);
    default:
      return new StartError(`The data directory ${dir} cannot be used: ${error.message}`);
  }
}

const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;
