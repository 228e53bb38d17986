/** Updates a server's snapshot, and keeps it in the module that the edge imports. */
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import type { Acceptance } from "../../core/tools/index.ts";
import type { Snapshot } from "../snapshot.ts";
import type { WrapOptions } from "../wrap-options.ts";
import { acceptEntries, narrow } from "./accepted-list.ts";
import { differences } from "./list-differences.ts";

/** Begins the file that an edge imports. */
const MODULE_HEADER = "// Written by durable-mcp-edge sync: what the server says of its tools.\nexport default ";

/** Writes a snapshot as JSON if the name ends in `.json`, otherwise as a module; resolves with whether the file has changed. */
export async function writeSnapshot(file: URL, snapshot: Snapshot): Promise<boolean> {
  const json = JSON.stringify(snapshot, undefined, 2);
  const text = file.pathname.endsWith(".json") ? `${json}\n` : `${MODULE_HEADER}${json};\n`;
  if ((await textIn(file)) === text) return false;
  await replaceFile(file, text);
  return true;
}

/** Writes a file of which no reader sees a part only, not even after a crash. */
export async function replaceFile(file: URL, text: string): Promise<void> {
  const temporary = new URL(`${file.href}.${process.pid}`);
  await writeFile(temporary, text);
  await rename(temporary, file);
}

/** The text of a file; undefined if the file does not exist. */
const textIn = (file: URL): Promise<string | undefined> =>
  readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    return undefined;
  });

/** The snapshot in a file; undefined if the file does not exist. */
export async function readSnapshot(file: URL): Promise<Snapshot | undefined> {
  const text = await textIn(file);
  const json = text?.replace(/^[^{]*export default/, "").replace(/;\s*$/, "");
  return json === undefined ? undefined : (JSON.parse(json) as Snapshot);
}

/**
 * The file beside a snapshot that holds the server's present lists while some of their changes wait for acceptance: `waiting.json` for
 * `snapshot.json`, `acme.waiting.json` for `acme.snapshot.ts`, which may stand beside those of other servers.
 */
export function waitingFileOf(snapshot: URL): URL {
  const [, name = ""] = /([^/]*?)\.?(snapshot)?\.\w+$/.exec(snapshot.pathname) ?? [];
  return new URL(`./${name === "" ? "" : `${name}.`}waiting.json`, snapshot);
}

export interface Update {
  snapshot: Snapshot;
  /** The changes of the listed snapshot, one line each. */
  changes: string[];
  /** The changes that are not listed before somebody accepts them, one line each. */
  unapprovedChanges: string[];
}

/**
 * Updates a server's snapshot. The first one counts as accepted. Of later ones, the changes that narrow are accepted, and all
 * changes of the entries that `accept` names. `isComplete`: with complete texts and all lines.
 */
export function updateOf(
  before: Snapshot | undefined,
  now: Snapshot,
  { follow = false, accept = [] }: Pick<WrapOptions, "follow"> & { accept?: readonly string[] },
  isComplete = false,
): Update {
  const snapshot =
    before === undefined || follow
      ? { ...now, ...(before?.acceptances && { acceptances: before.acceptances }) }
      : narrow(acceptEntries(before, now, accept), now);
  const unapprovedChanges = differences(snapshot, now);
  return {
    snapshot: unapprovedChanges.length > 0 ? { ...snapshot, unapprovedChanges } : snapshot,
    changes: before === undefined ? [] : differences(before, snapshot, isComplete),
    unapprovedChanges: isComplete ? differences(snapshot, now, true) : unapprovedChanges,
  };
}

const MAX_ACCEPTANCES = 5;

/** Records an acceptance in an updated snapshot, for the audit log of the deployment that lists it. */
export function recordAcceptance(update: Update, before: Snapshot, source: Omit<Acceptance, "at" | "changes">): void {
  const acceptance = { ...source, at: new Date().toISOString(), changes: differences(before, update.snapshot) };
  const acceptances = [...(before.acceptances ?? []), acceptance].slice(-MAX_ACCEPTANCES);
  update.snapshot = { ...update.snapshot, acceptances };
}

/** Writes an updated snapshot and the lists that wait; resolves with whether something waits that differs from before. */
export async function writeUpdate(file: URL, { snapshot, unapprovedChanges }: Update, now: Snapshot): Promise<boolean> {
  await writeSnapshot(file, snapshot);
  const waitingFile = waitingFileOf(file);
  if (unapprovedChanges.length > 0) return writeSnapshot(waitingFile, now);
  await rm(waitingFile, { force: true });
  return false;
}
