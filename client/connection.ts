/** A connection to a server: a server that is away for a while is asked again. */
import { Client, ProtocolError, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createParser } from "eventsource-parser";
import * as z from "zod";
import { jsonOf } from "../core/store/json.ts";
import { pause } from "../core/store/pacing/backoff.ts";
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
import { causeOfStatus, failureOf, RequestFailure } from "./failure.ts";

/** For how long a server that does not answer is asked again, in milliseconds. */
const RETRY_TIMEOUT_MS = 60_000;
/** The shortest pause before a request is repeated, in milliseconds. */
const MIN_PAUSE_MS = 1_000;

/** How long the answer to a start may take, in milliseconds. */
const START_TIMEOUT_MS = 90_000;

/** How long the answer to a call may take, in seconds, unless the call itself waits; and how much longer than the call's wait. */
const CALL_SECONDS = 60;
const EXTRA_CALL_SECONDS = 30;

/** How much of an answer outside the protocol is shown. */
const MAX_EXCERPT_CHARACTERS = 200;

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

/** A connection that is opened again after a failure. */
export class Connection {
  readonly #options: ConnectionOptions;
  #current: { client: Client; ready: Promise<void> } | undefined;
  /** Aborted when the connection is closed. */
  readonly #closing = new AbortController();
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

  /** The answer to a request. @throws {Error} if the server refuses it, or does not answer for a minute */
  ask<T>(request: (client: Client) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.#withRetries(async () => {
      this.#current ??= this.#open();
      const { client, ready } = this.#current;
      try {
        await ready;
        return await request(client);
      } catch (error) {
        // After a refusal, an HTTP 429 or an abort the client, which other calls use too, is still good.
        const isGood = error instanceof ToolRefused || failureOf(error).why === "busy" || signal?.aborted;
        if (!isGood) await this.#discard(client);
        throw error;
      }
    }, signal);
  }

  /** The structured content of a tool's answer. @throws {ToolRefused} */
  call(
    name: string,
    args: object,
    { signal, seconds = CALL_SECONDS }: { signal?: AbortSignal; seconds?: number } = {},
  ): Promise<Record<string, unknown>> {
    const options = { timeout: (seconds + EXTRA_CALL_SECONDS) * 1_000, ...(signal && { signal }) };
    return this.ask(async (client) => {
      const { structuredContent, isError, content } = await client.callTool({ name, arguments: { ...args } }, options);
      if (isError) throw new ToolRefused(textOf(content));
      return { ...(structuredContent as Record<string, unknown> | undefined) };
    }, signal);
  }

  /** Calls a tool and accepts a task for an answer, which the SDK's client does not. */
  start(name: string, args: object, labels: readonly string[] = []): Promise<Record<string, unknown>> {
    const _meta = {
      ...(labels.length > 0 && { [LABELS_META]: labels }),
      [PROTOCOL_VERSION_META]: REVISION,
      [CLIENT_INFO]: this.#info,
      [CLIENT_CAPABILITIES]: { elicitation: {}, extensions: { ...capabilities.extensions, [TASKS]: {} } },
    };
    const params = { name, arguments: args, _meta };
    return this.#withRetries(async () => {
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
        signal: AbortSignal.any([this.#closing.signal, AbortSignal.timeout(START_TIMEOUT_MS)]),
      });
      return resultIn(response);
    });
  }

  /** Ends the calls under way. */
  async close(): Promise<void> {
    this.#closing.abort();
    if (this.#current) await this.#discard(this.#current.client);
  }

  async #discard(client: Client): Promise<void> {
    if (this.#current?.client === client) this.#current = undefined;
    await client.close().catch(() => {});
  }

  async #withRetries<T>(request: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (let failingSince: number | undefined; ; ) {
      signal?.throwIfAborted();
      try {
        return await request();
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof ToolRefused) throw error;
        const failure = failureOf(error);
        // From the first failure on, which may come after a long wait for an answer.
        failingSince ??= Date.now();
        const mayPass = failure.why === "unavailable" || failure.why === "busy";
        if (!mayPass || Date.now() - failingSince > RETRY_TIMEOUT_MS) throw this.#explain(failure);
        const requestedPause = Math.min(this.#notBefore - Date.now(), RETRY_TIMEOUT_MS);
        const stop = AbortSignal.any([this.#closing.signal, ...(signal ? [signal] : [])]);
        await pause(Math.max(MIN_PAUSE_MS, requestedPause), stop);
        if (this.#closing.signal.aborted) throw this.#explain(failure);
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

  #explain(failure: RequestFailure): Error {
    const { url, advice = "" } = this.#options;
    const message = failure.why === "token" ? `${url} refuses the token${advice}.` : `${url}: ${failure.message}`;
    return new Error(message, { cause: failure.cause ?? failure });
  }
}

/** The result in a response to a request. @throws {RequestFailure | ProtocolError} */
async function resultIn(response: Response): Promise<Record<string, unknown>> {
  const text = await response.text();
  let json = text;
  if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
    // Without tasks a server may stream its answer, which is the last event.
    const parser = createParser({ onEvent: ({ data }) => (json = data) });
    parser.feed(text);
  }
  const answer = Answer.safeParse(jsonOf(json)).data;
  if (!answer) {
    const { status } = response;
    const why = status === 403 ? "token" : causeOfStatus(status);
    throw new RequestFailure(why, `HTTP ${status}: ${text.slice(0, MAX_EXCERPT_CHARACTERS)}`);
  }
  if ("error" in answer) throw new ProtocolError(answer.error.code, answer.error.message);
  return answer.result;
}

/** The text of a tool's answer. */
export const textOf = (content: unknown): string =>
  (content as { text?: string }[]).map(({ text = "" }) => text).join(" ");
