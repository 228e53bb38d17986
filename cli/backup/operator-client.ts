import type { BackupPosition, BackupRow } from "../../server/backup.ts";
import { parseJson } from "../parse-json.ts";

/** How long one answer may take, in milliseconds. */
const TIMEOUT = 60_000;

export interface Page {
  rows: BackupRow[];
  next?: BackupPosition;
}

/** The operator's API of the account's own Resonate server, through the edge. */
export class OperatorClient {
  readonly #base: string;
  readonly #token: string;

  /** @throws {Error} without a token */
  constructor(edge: string, token = process.env.OPERATOR_TOKEN) {
    if (!token) throw new Error("Set OPERATOR_TOKEN: `npm run deploy -- --operator NAME` makes one.");
    this.#base = `${edge.replace(/\/+$/, "")}/resonate/operate/`;
    this.#token = token;
  }

  /** Sends a request and parses the answer. @throws {Error} for users, if it is refused or the server is unreachable */
  // biome-ignore lint/suspicious/noExplicitAny: the caller knows the shape of the answer
  async ask(method: string, path: string, query: Record<string, string> = {}, body?: string): Promise<any> {
    const url = `${this.#base}${path}?${new URLSearchParams(query)}`;
    const response = await fetch(url, {
      method,
      headers: { authorization: `Bearer ${this.#token}` },
      ...(body !== undefined && { body }),
      signal: AbortSignal.timeout(TIMEOUT),
    }).catch((error) => Promise.reject(new Error(`${url} cannot be reached: ${error.cause ?? error}`)));
    const text = await response.text();
    if (response.status === 401) throw new Error("The server does not know the token in OPERATOR_TOKEN.");
    if (response.status === 404 && !text.startsWith("{")) {
      throw new Error(
        `Nothing answers an operator at ${this.#base}: RESONATE_PUBLIC is not 1, or this is no such deployment.`,
      );
    }
    const said = parseJson(text);
    if (!response.ok || said?.refused !== undefined) {
      throw new Error(said?.refused ?? `${url} answered ${response.status} ${text.slice(0, 200)}`);
    }
    return said;
  }

  rows(after: BackupPosition | undefined): Promise<Page> {
    return this.ask("GET", "rows", after && { after: JSON.stringify(after) });
  }
}
