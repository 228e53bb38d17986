/**
 * Cards in the chat, by the extension MCP Apps: tools that start jobs name a page, which hosts that show such pages read as a
 * resource. All tools name the same page; a second resource is the program with which it draws charts. Other clients ignore
 * both.
 */

import type { EdgeFeature } from "../../core/feature.ts";
import { CARD_MIME_TYPE, ErrorCode, ProtocolError, type Tool } from "../../core/tools/index.ts";
import type { Assets } from "../../functions/http/assets.ts";
import { answerForUser, jobCard } from "./card.ts";

/** How long a client may cache a card, which only a new deployment changes, in milliseconds. */
const CARD_TTL_MS = 5 * 60_000;

export class Cards {
  /** The tools with their card, and the tools that the card calls. */
  readonly tools: readonly Tool[];
  readonly #files: Assets;
  readonly #byUri: ReadonlyMap<string, { file: string; mimeType: string; _meta?: Record<string, unknown> }>;

  constructor(files: Assets, server: string, tools: readonly Tool[]) {
    const [card, chart] = [`ui://${server}/job.html`, `ui://${server}/chart.js`];
    this.#files = files;
    this.#byUri = new Map([
      // A card names no other origins, so hosts let it neither load from nor connect to any.
      [card, { file: "card.html", mimeType: CARD_MIME_TYPE, _meta: { ui: { prefersBorder: true } } }],
      [chart, { file: "card-chart.js", mimeType: "text/javascript" }],
    ]);
    this.tools = [
      ...tools.map((tool) => (hasCard(tool) ? withMeta(tool, { ui: { resourceUri: card } }) : tool)),
      jobCard(tools, chart),
      answerForUser,
    ];
  }

  has(uri: string): boolean {
    return this.#byUri.has(uri);
  }

  /** Reads a card or its chart; undefined for any other address. @throws {ProtocolError} where its file is missing */
  async read(uri: string) {
    const card = this.#byUri.get(uri);
    if (!card) return undefined;
    const { file, ...content } = card;
    const read = await this.#files.fetch(new Request(`https://assets.invalid/${file}`));
    if (!read.ok) throw new ProtocolError(ErrorCode.InternalError, `${uri} is not deployed: ${read.status}`);
    return { contents: [{ uri, text: await read.text(), ...content }] };
  }
}

/** Whether a tool gets the card of a job: it starts one, and its author has not given it a page. */
const hasCard = ({ job, listing }: Tool): boolean =>
  job !== undefined && (listing._meta as { ui?: unknown } | undefined)?.ui === undefined;

function withMeta(tool: Tool, meta: object): Tool {
  return { ...tool, listing: { ...tool.listing, _meta: { ...(tool.listing._meta as object | undefined), ...meta } } };
}

/** The cards as a feature: tools name them, and hosts read them as resources. */
export const cardFeature = (cards: Cards): EdgeFeature => ({
  name: "cards",
  tools: () => cards.tools,
  resources: {
    costOf: (uri) => (cards.has(uri) ? { access: ["read"] } : undefined),
    read: async (uri) => ({ ...(await cards.read(uri)), ttlMs: CARD_TTL_MS, cacheScope: "public" }),
  },
});
