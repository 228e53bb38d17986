/**
 * Cards in the chat, by the extension MCP Apps: the tools that start jobs name a page, which hosts that show such pages read
 * as a resource. It is one file, with what is particular to the tool put in. Other clients notice nothing of it.
 */

import type { Tool } from "../../core/author/tool.ts";
import { CARD, ErrorCode, ProtocolError } from "../../core/tools/mcp.ts";
import { answerForUser, jobCard } from "../built-in/card.ts";
import { CACHE } from "../mcp/identity.ts";
import type { PageFiles } from "../pages/files.ts";

const FILE = "https://assets.invalid/card.html";

/** In the file, where it says what it is the card of. */
const ABOUT = '<script id="about" type="application/json">{}</script>';

export class Cards {
  /** The tools with their cards, and those that cards call. */
  readonly tools: readonly Tool[];
  readonly #files: PageFiles;
  /** The tools by the addresses of their cards. */
  readonly #byUri: ReadonlyMap<string, Tool>;

  constructor(files: PageFiles, server: string, tools: readonly Tool[]) {
    const uriOf = ({ name }: Tool) => `ui://${server}/${name}.html`;
    const shown = tools.filter(hasCard);
    this.#files = files;
    this.#byUri = new Map(shown.map((tool) => [uriOf(tool), tool]));
    this.tools = [
      ...tools.map((tool) => (hasCard(tool) ? withMeta(tool, { ui: { resourceUri: uriOf(tool) } }) : tool)),
      jobCard(tools),
      answerForUser,
    ];
  }

  has(uri: string): boolean {
    return this.#byUri.has(uri);
  }

  /** The card at an address that has one. @throws {ProtocolError} where its file is missing */
  async read(uri: string) {
    const tool = this.#byUri.get(uri) as Tool;
    const file = await this.#files.fetch(new Request(FILE));
    if (!file.ok) throw new ProtocolError(ErrorCode.InternalError, `${uri} is not deployed: ${file.status}`);
    const about = { tool: tool.name, title: tool.listing.title, kind: tool.job?.kind, view: tool.job?.view };
    const json = JSON.stringify(about).replaceAll("<", "\\u003c");
    const text = (await file.text()).replace(ABOUT, () => ABOUT.replace("{}", () => json));
    // Nothing of another origin is loaded, and none is asked: hosts allow none unless they are named.
    return { contents: [{ uri, mimeType: CARD, text, _meta: { ui: { prefersBorder: true } } }], ...CACHE };
  }
}

/** Whether a tool's calls are shown as the job that they start: unless its author has given it a page of its own. */
const hasCard = ({ job, listing }: Tool): boolean =>
  job !== undefined && (listing._meta as { ui?: unknown } | undefined)?.ui === undefined;

function withMeta(tool: Tool, meta: object): Tool {
  return { ...tool, listing: { ...tool.listing, _meta: { ...(tool.listing._meta as object | undefined), ...meta } } };
}
