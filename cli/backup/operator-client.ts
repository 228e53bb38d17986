import type { CallerRowPage, CallerRowPosition } from "../../core/jobs/index.ts";
import { jsonOf } from "../../core/resonate/index.ts";
import type { BackupPosition, BackupRow } from "../../server/engine/backup.ts";

/** How long one answer may take. */
const REQUEST_TIMEOUT_MS = 60_000;

/** Reads rows page by page. `next` of a page is the position after which the next page begins. */
export async function* paged<Row, Position>(
  read: (after: Position | undefined) => Promise<{ rows: Row[]; next?: Position }>,
): AsyncGenerator<Row[]> {
  let after: Position | undefined;
  do {
    const { rows, next } = await read(after);
    yield rows;
    after = next;
  } while (after);
}

const SET_TOKEN = "Set OPERATOR_TOKEN: `npm run deploy -- --operator NAME` makes one.";

/** The server refused a request, and so did nothing. */
export class Refused extends Error {
  /** 404: what was asked for does not exist. */
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** A client of the operators' API of the edge, and through it of the account's own Resonate server. */
export class OperatorClient {
  readonly #edge: string;
  readonly #token: string;

  /** `token`: empty for a stack on this machine, which needs none. @throws {Error} without a token */
  constructor(edge: string, token = process.env.OPERATOR_TOKEN || undefined) {
    if (token === undefined) throw new Error(SET_TOKEN);
    this.#edge = edge.replace(/\/+$/, "");
    this.#token = token;
  }

  /**
   * Sends a request and parses the answer. A `path` without a leading slash addresses the Resonate server, another the edge.
   *
   * @throws {Error} with a message for users, if the request is refused or the server is unreachable
   */
  // oxlint-disable-next-line typescript/no-explicit-any -- the caller knows the shape of the answer
  async ask(method: string, path: string, query: object = {}, body?: string): Promise<any> {
    const isEdges = path.startsWith("/");
    const base = isEdges ? this.#edge : `${this.#edge}/resonate/operate/`;
    const definedQuery = JSON.parse(JSON.stringify(query)); // without undefined values
    const url = `${base}${path}?${new URLSearchParams(definedQuery)}`;
    const response = await fetch(url, {
      method,
      headers: { "content-type": "application/json", ...(this.#token && { authorization: `Bearer ${this.#token}` }) },
      ...(body !== undefined && { body }),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    }).catch((error) => Promise.reject(new Error(`${url} cannot be reached: ${error.cause ?? error}`)));
    const text = await response.text();
    if (response.status === 401)
      throw new Error(this.#token ? "The server does not know the token in OPERATOR_TOKEN." : SET_TOKEN);
    const answer = jsonOf(text) as { refused?: string; error?: string } | undefined;
    // An answer about a failed job has an `error`, too.
    if (isEdges && !response.ok && answer?.error !== undefined) throw new Error(answer.error);
    if (response.status === 404 && answer?.refused === undefined) {
      throw new Error(
        `Nothing answers an operator at ${base}: RESONATE_PUBLIC is not 1, or the jobs are on a standalone server, whose database is backed up by itself.`,
      );
    }
    if (answer?.refused !== undefined) throw new Refused(answer.refused, response.status);
    if (!response.ok) throw new Error(`${url} answered ${response.status} ${text.slice(0, 200)}`);
    return answer;
  }

  /** The rows of the account's own Resonate server. */
  rowPages(): AsyncGenerator<BackupRow[]> {
    return paged<BackupRow, BackupPosition>((after) =>
      this.ask("GET", "rows", after && { after: JSON.stringify(after) }),
    );
  }

  /** Prolongs the pause of the account's own server, as reading rows does. @throws {Error} if the pause has ended */
  async prolongPause(): Promise<void> {
    const behindTheLast: BackupPosition = [Number.MAX_SAFE_INTEGER];
    await this.ask("GET", "rows", { after: JSON.stringify(behindTheLast) });
  }

  /** The rows of callers' objects. `isOwnServer` says whether their jobs are in the account as well. */
  callerRows(after: CallerRowPosition | undefined): Promise<CallerRowPage & { isOwnServer: boolean }> {
    return this.ask("GET", "/operate/callers", after && { after: JSON.stringify(after) });
  }

  callerRowPages(): AsyncGenerator<CallerRowPage["rows"]> {
    return paged((after: CallerRowPosition | undefined) => this.callerRows(after));
  }

  /** Writes rows of callers' objects. The first row of an object replaces its content. */
  async putCallerRows(rows: CallerRowPage["rows"]): Promise<void> {
    await this.ask("POST", "/operate/callers", {}, JSON.stringify(rows));
  }
}
