/** A connection to a server: one that is away for a while is asked again. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createParser } from "eventsource-parser";
import * as z from "zod";
import { jsonOf } from "../core/resonate/json.ts";
import { pause } from "../core/resonate/pacing/backoff.ts";
import {
  CARD,
  CLIENT_CAPABILITIES,
  CLIENT_INFO,
  LABELS_META,
  PROTOCOL_VERSION_META,
  REVISION,
  TASKS,
  UI,
} from "../core/tools/mcp.ts";

/** For how long a server that does not answer is asked again, and the shortest pause in between; in milliseconds. */
const PATIENCE = 60_000;
const PAUSE = 1_000;

/** How long the answer to a start may take, in milliseconds. */
const TIMEOUT = 90_000;

/** A program asks its user itself, as cards do. */
const capabilities = { extensions: { [UI]: { mimeTypes: [CARD] } } };

export interface ConnectionOptions {
  url: URL;
  token?: string | undefined;
  name?: string;
  version?: string;
  /** What to do about a token that is refused, for the error. */
  advice?: string;
}

/**
 * A tool refused a call. The message is the text of its answer.
 *
 * @example
 * const isRefused = (error: unknown) => error instanceof ToolRefused && error.message.includes("url");
 */
export class ToolRefused extends Error {
  override name = "ToolRefused";
}

const Answer = z.union([
  z.object({ result: z.looseObject({}) }),
  z.object({ error: z.object({ code: z.number(), message: z.string() }) }),
]);

/** A connection that is opened anew after a failure. */
export class Connection {
  readonly #options: ConnectionOptions;
  #opened: { client: Client; ready: Promise<void> } | undefined;
  readonly #closed = new AbortController();
  /** The time before which the server asks not to be asked again. */
  #notBefore = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  get #info() {
    const { name = "durable-mcp-edge-client", version = "1" } = this.#options;
    return { name, version };
  }

  get #headers(): Record<string, string> {
    const { token } = this.#options;
    return token ? { authorization: `Bearer ${token}` } : {};
  }

  /** The answer to a request. @throws {Error} where the server refuses it, or does not answer for a minute */
  ask<T>(request: (client: Client) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.#patiently(async () => {
      this.#opened ??= this.#open();
      const { client, ready } = this.#opened;
      try {
        await ready;
        return await request(client);
      } catch (error) {
        // After a refusal, an HTTP 429 or an abort the client, which other calls use too, is still good.
        const isGood = error instanceof ToolRefused || (error as { status?: number }).status === 429 || signal?.aborted;
        if (!isGood) await this.#discard(client);
        throw error;
      }
    }, signal);
  }

  /** The structured content of a tool's answer. @throws {ToolRefused} */
  call(name: string, args: object, { signal, seconds = 60 }: { signal?: AbortSignal; seconds?: number } = {}) {
    const options = { timeout: (seconds + 30) * 1_000, ...(signal && { signal }) };
    return this.ask(async (client) => {
      const { structuredContent, isError, content } = await client.callTool({ name, arguments: { ...args } }, options);
      if (isError) throw new ToolRefused(wordsOf(content));
      return { ...(structuredContent as Record<string, unknown> | undefined) };
    }, signal);
  }

  /** Calls a tool and takes a task for an answer, which the SDK's client does not. */
  start(name: string, args: object, labels: readonly string[] = []): Promise<Record<string, unknown>> {
    const _meta = {
      ...(labels.length > 0 && { [LABELS_META]: labels }),
      [PROTOCOL_VERSION_META]: REVISION,
      [CLIENT_INFO]: this.#info,
      [CLIENT_CAPABILITIES]: { elicitation: {}, extensions: { ...capabilities.extensions, [TASKS]: {} } },
    };
    const params = { name, arguments: args, _meta };
    return this.#patiently(async () => {
      const response = await this.#fetch(this.#options.url, {
        method: "POST",
        headers: {
          ...this.#headers,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": REVISION,
          "mcp-method": "tools/call",
          "mcp-name": name,
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
        signal: AbortSignal.any([this.#closed.signal, AbortSignal.timeout(TIMEOUT)]),
      });
      const text = await response.text();
      let json = text;
      if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
        // Without tasks a server may stream its answer, which is the last event.
        const parser = createParser({ onEvent: ({ data }) => (json = data) });
        parser.feed(text);
      }
      const answer = Answer.safeParse(jsonOf(json)).data;
      if (!answer) throw new Error(`HTTP ${response.status}: ${text.slice(0, 200)}`);
      if ("error" in answer) throw Object.assign(new Error(answer.error.message), { code: answer.error.code });
      return answer.result;
    });
  }

  /** Ends the calls under way. */
  async close(): Promise<void> {
    this.#closed.abort();
    if (this.#opened) await this.#discard(this.#opened.client);
  }

  async #discard(client: Client): Promise<void> {
    if (this.#opened?.client === client) this.#opened = undefined;
    await client.close().catch(() => {});
  }

  async #patiently<T>(request: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (let failing: number | undefined; ; ) {
      signal?.throwIfAborted();
      try {
        return await request();
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof ToolRefused) throw error;
        // From the first failure on, which may come after a long wait for an answer.
        failing ??= Date.now();
        if (!isPassing(error) || Date.now() - failing > PATIENCE) throw this.#explained(error);
        const asked = Math.min(this.#notBefore - Date.now(), PATIENCE);
        await pause(Math.max(PAUSE, asked), AbortSignal.any([this.#closed.signal, ...(signal ? [signal] : [])]));
        if (this.#closed.signal.aborted) throw this.#explained(error);
      }
    }
  }

  #open() {
    const client = new Client(this.#info, { capabilities, versionNegotiation: { mode: "auto" } });
    const options = { requestInit: { headers: this.#headers }, fetch: this.#fetch };
    const ready = client.connect(new StreamableHTTPClientTransport(this.#options.url, options));
    ready.catch(() => this.#discard(client));
    return { client, ready };
  }

  /** Notes the pause that an answer asks for. A date, which `Retry-After` may also have, is ignored. */
  readonly #fetch: typeof fetch = async (...request) => {
    const response = await fetch(...request);
    const seconds = Number(response.headers.get("retry-after"));
    if (seconds > 0) this.#notBefore = Date.now() + 1_000 * seconds;
    return response;
  };

  #explained(error: unknown): Error {
    const { message, cause } = error as Error & { cause?: Error };
    const { url, advice = "" } = this.#options;
    const isRefused = /\b(401|403)\b|unauthorized|forbidden/i.test(message);
    const reason = cause?.message ? `${message}: ${cause.message}` : message;
    return new Error(isRefused ? `${url} refuses the token${advice}.` : `${url}: ${reason}`, { cause: error });
  }
}

export const wordsOf = (content: unknown): string =>
  (content as { text?: string }[]).map(({ text = "" }) => text).join(" ");

/**
 * Whether the same request may succeed later: nobody answered, the server said that it cannot now, or another call found their
 * client broken.
 */
function isPassing(error: unknown): boolean {
  const { message, code, status = 0 } = error as Error & { code?: unknown; status?: number };
  if (/fetch failed|ECONN|socket|terminated|timed out|\b(429|5\d\d)\b|unavailable/i.test(message)) return true;
  if (/connection closed|not connected|aborted/i.test(message)) return true;
  return code === -32603 || status === 429 || status >= 500;
}
