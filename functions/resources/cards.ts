/**
 * Cards in the chat, by the extension MCP Apps: tools that start jobs name a page, which hosts that show such pages read as a
 * resource. The page is one file into which the tool's particulars are put. Other clients do not notice it.
 */

import type { Tool } from "../../core/author/tool.ts";
import { CARD, ErrorCode, ProtocolError } from "../../core/tools/mcp.ts";
import { answerForUser, jobCard } from "../built-in/card.ts";
import type { Assets } from "../http/assets.ts";

const FILE = "https://assets.invalid/card.html";

/** The element of the file that holds the tool's particulars. */
const ABOUT = '<script id="about" type="application/json">{}</script>';

export class Cards {
  /** The tools with their cards, and the tools that cards call. */
  readonly tools: readonly Tool[];
  readonly #files: Assets;
  /** The tools by the addresses of their cards. */
  readonly #byUri: ReadonlyMap<string, Tool>;

  constructor(files: Assets, server: string, tools: readonly Tool[]) {
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

  /** Reads a card at an address for which {@link has} is true. @throws {ProtocolError} where its file is missing */
  async read(uri: string) {
    const tool = this.#byUri.get(uri) as Tool;
    const file = await this.#files.fetch(new Request(FILE));
    if (!file.ok) throw new ProtocolError(ErrorCode.InternalError, `${uri} is not deployed: ${file.status}`);
    const about = { tool: tool.name, title: tool.listing.title, kind: tool.job?.kind, view: tool.job?.view };
    const json = JSON.stringify(about).replaceAll("<", "\\u003c");
    const text = (await file.text()).replace(ABOUT, () => ABOUT.replace("{}", () => json));
    // A card names no other origins, so hosts let it load from none and connect to none.
    return { contents: [{ uri, mimeType: CARD, text, _meta: { ui: { prefersBorder: true } } }] };
  }
}

/** Whether a tool gets the card of a job: it starts one, and its author has not given it a page. */
const hasCard = ({ job, listing }: Tool): boolean =>
  job !== undefined && (listing._meta as { ui?: unknown } | undefined)?.ui === undefined;

function withMeta(tool: Tool, meta: object): Tool {
  return { ...tool, listing: { ...tool.listing, _meta: { ...(tool.listing._meta as object | undefined), ...meta } } };
}
