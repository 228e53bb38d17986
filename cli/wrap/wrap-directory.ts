/** The directory of a wrapped server's state. It depends on the command or URL, so that two servers never share one. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Snapshot, WrapOptions } from "../../wrap/index.ts";
import { readSnapshot, replaceFile, type Update, writeUpdate } from "../../wrap/worker/snapshot-file.ts";
import { DATA, stackRecordIn } from "../launcher/data-directory.ts";
import { FILES } from "./wrap-files.ts";

/**
 * The data directory of the stack in front of a server, and the server's name. `isNamed`: the user has given that name;
 * `isTaken`: another server in this folder already has it.
 */
export function directoryOf(options: WrapOptions, isNamed: boolean) {
  const id = identityOf(options);
  const all = servers();
  const own = all.find((each) => each.id === id);
  if (own && (!isNamed || own.name === options.name)) return { data: own.data, name: own.name, isTaken: false };
  const isTaken = all.some((each) => each.id !== id && each.name === options.name);
  const name = isTaken ? `${options.name}-${id.slice(0, 4)}` : options.name;
  return { data: join(DATA, `${name}-${id}`), name, isTaken };
}

/** A hash that identifies a command with its arguments and folder, or a URL. */
function identityOf({ url, command, args, cwd }: Partial<WrapOptions>): string {
  const what = url === undefined ? [command, args, cwd] : [url];
  return createHash("sha256").update(JSON.stringify(what)).digest("hex").slice(0, 8);
}

function servers(): { id: string; name: string; data: string }[] {
  const folders = existsSync(DATA) ? readdirSync(DATA).map((name) => join(DATA, name)) : [];
  return folders.flatMap((data) => {
    const options = optionsIn(stackRecordIn(data, false)?.project);
    return options ? [{ id: identityOf(options), name: options.name, data }] : [];
  });
}

/** The snapshot of a server in the folder of its files; undefined if the folder is new or another server's. */
export async function acceptedSnapshot(root: string, options: WrapOptions): Promise<Snapshot | undefined> {
  const present = optionsIn(root);
  if (present && identityOf(present) !== identityOf(options)) return undefined;
  return readSnapshot(pathToFileURL(join(root, FILES.snapshot)));
}

/** The folders of the projects from which stacks in this folder serve their servers. */
export const wrapFolders = (): string[] =>
  servers()
    .map(({ data }) => projectIn(data))
    .filter((root) => existsSync(join(root, FILES.options)));

/** The options of the server that a project folder wraps; undefined if it wraps none. */
function optionsIn(project: string | undefined): WrapOptions | undefined {
  if (project === undefined) return undefined;
  try {
    return JSON.parse(readFileSync(join(project, FILES.options), "utf8"));
  } catch {
    return undefined;
  }
}

/** The folder with the files from which the stack serves a server. */
export const projectIn = (data: string): string => join(data, "wrap");

/** Writes these files into the folder `root`, with a `package.json` by which `sync` and the doctor find them. */
export async function writeProject(
  root: string,
  options: WrapOptions,
  now: Snapshot,
  update: Update = { snapshot: now, changes: [], unapprovedChanges: [] },
): Promise<void> {
  await mkdir(root, { recursive: true });
  const manifest = { name: options.name, private: true, "durable-mcp-edge": { wrapped: FILES.options } };
  await replaceFile(pathToFileURL(join(root, "package.json")), json(manifest));
  await replaceFile(pathToFileURL(join(root, FILES.options)), json(options));
  await writeUpdate(pathToFileURL(join(root, FILES.snapshot)), update, now);
}

const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;
