/** Reads a server's lists, and keeps them in the module that the edge imports. */
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { within } from "../../core/resonate/pacing/backoff.ts";
import type { Acceptance } from "../../core/tools/tool.ts";
import { type Listed, type Lists, MAX_INSTRUCTIONS, OFFERS, type Snapshot } from "../snapshot.ts";
import type { WrapOptions } from "../wrap-options.ts";
import { accepted, differences, narrowed } from "./agreed-list.ts";
import type { Connection } from "./connection/connection.ts";
import { ToolList } from "./tool-list.ts";

/** How long a page of a list may take by default, in milliseconds, and how many pages are read. */
const TIMEOUT = 30_000;
const MAX_PAGES = 2_000;

/**
 * The server's present description of itself and its lists, unchanged except for the size limits. `timeout`: how long a page of
 * tools may take, in milliseconds; a server may do the work of its start when it is asked for its tools.
 */
export async function snapshotOf(connection: Connection, timeout = TIMEOUT): Promise<Snapshot> {
  const { name = "unknown", version = "", title } = connection.client.getServerVersion() ?? {};
  const { tools, prompts, resources, completions, logging } = connection.client.getServerCapabilities() ?? {};
  const instructions = connection.client.getInstructions();
  const list = new ToolList();
  if (tools) {
    await read(connection, "tools/list", "tools", list, timeout).catch((error: Error) => {
      const advice = error instanceof NotAnswered ? ", and startTimeout (--start-timeout) allows more" : "";
      throw new Error(`tools/list: ${error.message}${advice}`, { cause: error });
    });
  }
  const left = [...list.left];
  const listed = async (method: string, field: keyof Lists, noun: "prompt" | "resource" | "template of resources") => {
    const entries = new ToolList(noun);
    // A server may announce a capability that it does not have.
    await read(connection, method, field, entries).catch(({ message }: Error) => left.push(`${method}: ${message}.`));
    left.push(...entries.left);
    return entries.tools as Listed[];
  };
  const lists = {
    prompts: prompts ? await listed("prompts/list", "prompts", "prompt") : [],
    resources: resources ? await listed("resources/list", "resources", "resource") : [],
    resourceTemplates: resources
      ? await listed("resources/templates/list", "resourceTemplates", "template of resources")
      : [],
  };
  const has = { completions, logging, subscribe: resources?.subscribe };
  const offers = OFFERS.filter((offer) => has[offer]);
  return {
    server: { name: short(name), version: short(version), ...(title !== undefined && { title: short(title) }) },
    revision: connection.revision,
    ...(instructions !== undefined && { instructions: instructions.slice(0, MAX_INSTRUCTIONS) }),
    resources: resources !== undefined,
    tools: list.tools,
    lists,
    offers,
    ...(left.length > 0 && { left }),
  };
}

class NotAnswered extends Error {}

async function read(
  connection: Connection,
  method: string,
  field: string,
  list: ToolList,
  timeout = TIMEOUT,
): Promise<void> {
  let cursor: unknown;
  for (let page = 0; !list.isFull && page < MAX_PAGES; page++) {
    const request = connection.request(method, cursor === undefined ? {} : { cursor });
    const result = await within(request.result, timeout);
    if (!result) {
      request.cancel("it took too long");
      throw new NotAnswered(`it was not answered within ${timeout / 1_000} s`);
    }
    list.add(result[field]);
    cursor = result.nextCursor;
    if (cursor === undefined) return;
  }
  if (!list.isFull) list.end(`has more than ${MAX_PAGES} pages`);
}

/** Without control characters, which a terminal would obey. */
const short = (text: string): string => text.replace(/\p{Cc}/gu, "").slice(0, 200);

/** Begins the file that an edge imports. */
const HEADER = "// Written by durable-mcp-edge sync: what the server says of its tools.\nexport default ";

/** Writes a snapshot as JSON if the name ends in `.json`, otherwise as a module; resolves with whether the file has changed. */
export async function writeSnapshot(file: URL, snapshot: Snapshot): Promise<boolean> {
  const json = JSON.stringify(snapshot, undefined, 2);
  const text = file.pathname.endsWith(".json") ? `${json}\n` : `${HEADER}${json};\n`;
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
 * The file beside a snapshot that holds the server's present lists while some of their changes are held back: `waiting.json` for
 * `snapshot.json`, `acme.waiting.json` for `acme.snapshot.ts`, which may stand beside those of other servers.
 */
export function waitingBeside(snapshot: URL): URL {
  const [, name = ""] = /([^/]*?)\.?(snapshot)?\.\w+$/.exec(snapshot.pathname) ?? [];
  return new URL(`./${name === "" ? "" : `${name}.`}waiting.json`, snapshot);
}

export interface Update {
  snapshot: Snapshot;
  /** The changes of the listed snapshot, and those that are held back: one line each. */
  taken: string[];
  held: string[];
}

/**
 * Updates a server's snapshot. The first one counts as accepted. Of later ones, the changes that narrow are accepted, and all
 * changes of the entries that `accept` names. `whole`: with complete texts and all lines.
 */
export function updated(
  before: Snapshot | undefined,
  now: Snapshot,
  { follow = false, accept = [] }: Pick<WrapOptions, "follow"> & { accept?: readonly string[] },
  whole = false,
): Update {
  const snapshot =
    before === undefined || follow
      ? { ...now, ...(before?.acceptances && { acceptances: before.acceptances }) }
      : narrowed(accepted(before, now, accept), now);
  const held = differences(snapshot, now);
  return {
    snapshot: held.length > 0 ? { ...snapshot, held } : snapshot,
    taken: before === undefined ? [] : differences(before, snapshot, whole),
    held: whole ? differences(snapshot, now, true) : held,
  };
}

/** The largest number of acceptances that a snapshot keeps. */
const MOST_ACCEPTANCES = 5;

/** Records an acceptance in an updated snapshot, for the audit trail of the deployment that lists it. */
export function noteAcceptance(update: Update, before: Snapshot, about: Omit<Acceptance, "at" | "changes">): void {
  const acceptance = { ...about, at: new Date().toISOString(), changes: differences(before, update.snapshot) };
  const acceptances = [...(before.acceptances ?? []), acceptance].slice(-MOST_ACCEPTANCES);
  update.snapshot = { ...update.snapshot, acceptances };
}

/** Writes an updated snapshot and the waiting lists; resolves with whether something waits that differs from before. */
export async function writeUpdate(file: URL, { snapshot, held }: Update, now: Snapshot): Promise<boolean> {
  await writeSnapshot(file, snapshot);
  const waiting = waitingBeside(file);
  if (held.length > 0) return writeSnapshot(waiting, now);
  await rm(waiting, { force: true });
  return false;
}
