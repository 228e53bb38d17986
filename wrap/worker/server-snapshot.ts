/** Reads a server's description of itself and its lists. */
import { within } from "../../core/resonate/index.ts";
import { type ListEntry, type Lists, MAX_INSTRUCTIONS_CHARACTERS, OFFERS, type Snapshot } from "../snapshot.ts";
import type { Connection } from "./connection/connection.ts";
import { EntryList, type Noun } from "./entry-list.ts";
import { hasLostSession } from "./host/errors.ts";

/** How long a page of a list may take by default, in milliseconds. */
const PAGE_TIMEOUT_MS = 30_000;
const MAX_PAGES = 2_000;
/** The maximum length of the server's name, title and version. */
const MAX_NAME_CHARACTERS = 200;

/**
 * The server's present description of itself and its lists, unchanged except for the size limits. `timeout`: how long a page of
 * tools may take, in milliseconds; a server may do the work of its start when it is asked for its tools.
 */
export async function snapshotOf(connection: Connection, timeout = PAGE_TIMEOUT_MS): Promise<Snapshot> {
  const { name = "unknown", version = "", title } = connection.client.getServerVersion() ?? {};
  const { tools, prompts, resources, completions, logging } = connection.client.getServerCapabilities() ?? {};
  const instructions = connection.client.getInstructions();
  const toolList = new EntryList();
  if (tools) {
    await readList(connection, "tools/list", "tools", toolList, timeout).catch((error: Error) => {
      const advice = error instanceof PageTimeout ? ", and startTimeout (--start-timeout) allows more" : "";
      throw new Error(`tools/list: ${error.message}${advice}`, { cause: error });
    });
  }
  await toolList.checkOutputSchemas();
  const omissions = [...toolList.omissions];
  const entriesOf = async (method: string, field: keyof Lists, noun: Noun) => {
    const list = new EntryList(noun);
    // A server may announce a capability that it does not have.
    await readList(connection, method, field, list).catch((error: Error) => {
      if (hasLostSession(error)) throw new Error(`${method}: ${error.message}`, { cause: error });
      omissions.push(`${method}: ${error.message}.`);
    });
    omissions.push(...list.omissions);
    return list.entries as ListEntry[];
  };
  const lists = {
    prompts: prompts ? await entriesOf("prompts/list", "prompts", "prompt") : [],
    resources: resources ? await entriesOf("resources/list", "resources", "resource") : [],
    resourceTemplates: resources
      ? await entriesOf("resources/templates/list", "resourceTemplates", "template of resources")
      : [],
  };
  const has = { completions, logging, subscribe: resources?.subscribe };
  const server = {
    name: printable(name),
    version: printable(version),
    ...(title !== undefined && { title: printable(title) }),
  };
  return {
    server,
    revision: connection.revision,
    ...(instructions !== undefined && { instructions: instructions.slice(0, MAX_INSTRUCTIONS_CHARACTERS) }),
    resources: resources !== undefined,
    tools: toolList.entries,
    lists,
    offers: OFFERS.filter((offer) => has[offer]),
    ...(omissions.length > 0 && { omissions }),
  };
}

/** The server did not answer a request for a page of a list in time. */
class PageTimeout extends Error {
  override name = "PageTimeout";
}

/**
 * Reads the pages of a list. The SDK's client would refuse the whole list for one odd entry or more than some pages, and read what
 * is beyond the limits.
 */
async function readList(
  connection: Connection,
  method: string,
  field: string,
  list: EntryList,
  timeout = PAGE_TIMEOUT_MS,
): Promise<void> {
  let cursor: unknown;
  for (let page = 0; page < MAX_PAGES; page++) {
    const request = connection.request(method, cursor === undefined ? {} : { cursor }, { isCut: true });
    const result = await within(request.result, timeout);
    if (!result) {
      request.cancel("it took too long");
      throw new PageTimeout(`it was not answered within ${timeout / 1_000} s`);
    }
    cursor = list.add(result[field], result.nextCursor);
    if (cursor === undefined) return;
  }
  list.end(`has more than ${MAX_PAGES} pages`);
}

/** Without characters that a terminal would obey: control characters, and those that reverse or hide text. */
const printable = (text: string): string =>
  text.replace(/[\p{Cc}\p{Bidi_Control}\u200b\u2060\ufeff]/gu, "").slice(0, MAX_NAME_CHARACTERS);
