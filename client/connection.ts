/** A connection to a server: a server that is away for a while is asked again. */
import {
  Client,
  INTERNAL_ERROR,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { createParser } from "eventsource-parser";
import * as z from "zod";
import { jsonOf, pause } from "../core/resonate/index.ts";
import {
  CARD_MIME_TYPE,
  CLIENT_CAPABILITIES,
  CLIENT_INFO,
  LABELS_META,
  PROTOCOL_REVISION,
  PROTOCOL_VERSION_META,
  TASKS_EXTENSION,
  UI_EXTENSION,
} from "../core/tools/index.ts";

/** For how long a server that does not answer is asked again, in milliseconds. */
const MAX_RETRY_MS = 60_000;
/** The shortest pause before a request is repeated, in milliseconds. */
const MIN_PAUSE_MS = 1_000;

/** How long the answer to a start may take, in milliseconds. */
const START_TIMEOUT_MS = 90_000;

/** How long a call may wait at the server by default, and how much longer its answer may take; in seconds. */
const CALL_SECONDS = 60;
const EXTRA_CALL_SECONDS = 30;

/** How much of an answer outside the protocol is shown. */
const MAX_EXCERPT_CHARACTERS = 200;

/** A program asks its user itself, as cards do. */
const capabilities = { extensions: { [UI_EXTENSION]: { mimeTypes: [CARD_MIME_TYPE] } } };

export interface ConnectionOptions {
  url: URL;
  token?: string | undefined;
  name?: string;
  version?: string;
  /** What to do about a token that is refused, for the error. */
  advice?: string;
  /** For how long a server that does not answer is asked again, in milliseconds. Default: a minute. */
  retryMs?: number;
}

/**
 * A tool refused a call. The message is the text of its answer.
 *
 * @example
 * const whyRefused = (error: unknown) => (error instanceof ToolRefused ? error.message : undefined);
 */
export class ToolRefused extends Error {
  override name = "ToolRefused";
}

/**
 * A request has no answer of the server. The cause is the error of the last try.
 */
export class RequestFailed extends Error {
  override name = "RequestFailed";
  readonly why: "token refused" | "unavailable" | "refused";

  constructor(message: string, why: RequestFailed["why"], cause: unknown) {
    super(message, { cause });
    this.why = why;
  }
}

/** The answer to a start is none of the protocol. */
class UnexpectedAnswer extends Error {
  readonly status: number;

  constructor(status: number, text: string) {
    super(`HTTP ${status}: ${text.slice(0, MAX_EXCERPT_CHARACTERS)}`);
    this.status = status;
  }
}

/** Another call found the client broken that a request used as well. The cause is the request's own error. */
class ClientDiscarded extends Error {}

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

  /** The answer to a request. @throws {RequestFailed} if the server refuses it, or does not answer for a minute */
  ask<T>(request: (client: Client) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.#withRetries(async () => {
      this.#current ??= this.#open();
      const { client, ready } = this.#current;
      await ready;
      try {
        return await request(client);
      } catch (error) {
        // After a refusal, an HTTP 429 or an abort the client, which other calls use too, is still good.
        if (error instanceof ToolRefused || statusIn(error) === 429 || signal?.aborted) throw error;
        const isDiscarded = this.#current?.client !== client && !isAnswer(error);
        await this.#discard(client);
        throw isDiscarded ? new ClientDiscarded("", { cause: error }) : error;
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
      [PROTOCOL_VERSION_META]: PROTOCOL_REVISION,
      [CLIENT_INFO]: this.#info,
      [CLIENT_CAPABILITIES]: { elicitation: {}, extensions: { ...capabilities.extensions, [TASKS_EXTENSION]: {} } },
    };
    const params = { name, arguments: args, _meta };
    return this.#withRetries(async () => {
      const response = await this.#fetch(this.#options.url, {
        method: "POST",
        headers: {
          ...this.#headers,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": PROTOCOL_REVISION,
          "mcp-method": "tools/call",
          "mcp-name": name,
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
        signal: AbortSignal.any([this.#closing.signal, AbortSignal.timeout(START_TIMEOUT_MS)]),
      });
      const text = await response.text();
      let json = text;
      if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
        // Without tasks a server may stream its answer, which is the last event.
        const parser = createParser({ onEvent: ({ data }) => (json = data) });
        parser.feed(text);
      }
      const answer = Answer.safeParse(jsonOf(json)).data;
      if (!answer) throw new UnexpectedAnswer(response.status, text);
      if ("error" in answer) throw new ProtocolError(answer.error.code, answer.error.message);
      return answer.result;
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
    for (let failingSince: number | undefined; ;) {
      signal?.throwIfAborted();
      try {
        return await request();
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof ToolRefused) throw error;
        // From the first failure on, which may come after a long wait for an answer.
        failingSince ??= Date.now();
        const { retryMs = MAX_RETRY_MS } = this.#options;
        if (!mayPass(error) || Date.now() - failingSince >= retryMs) throw this.#explain(error);
        const requestedPause = Math.min(this.#notBefore - Date.now(), retryMs);
        const stop = AbortSignal.any([this.#closing.signal, ...(signal ? [signal] : [])]);
        await pause(Math.max(MIN_PAUSE_MS, requestedPause), stop);
        if (this.#closing.signal.aborted) throw this.#explain(error);
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

  #explain(failure: unknown): RequestFailed {
    const error = failure instanceof ClientDiscarded ? failure.cause : failure;
    const { message, cause } = error as Error & { cause?: Error };
    const { url, advice = "" } = this.#options;
    const status = statusIn(error);
    if (status === 401 || status === 403) {
      return new RequestFailed(`${url} refuses the token${advice}.`, "token refused", error);
    }
    const reason = cause?.message ? `${message}: ${cause.message}` : message;
    return new RequestFailed(`${url}: ${reason}`, mayPass(failure) ? "unavailable" : "refused", error);
  }
}

/** The text of a tool's answer. */
export const textOf = (content: unknown): string =>
  (content as { text?: string }[]).map(({ text = "" }) => text).join(" ");

/** The HTTP status with which the server refused a request; undefined if there is none. */
const statusIn = (error: unknown): number | undefined =>
  error instanceof SdkHttpError || error instanceof UnexpectedAnswer ? error.status : undefined;

/** Whether the server has answered, with this error. */
const isAnswer = (error: unknown): boolean => error instanceof ProtocolError || statusIn(error) !== undefined;

/** The codes of a request that was not sent, or whose answer has not come. */
const NO_ANSWER_CODES: readonly SdkErrorCode[] = [
  SdkErrorCode.NotConnected,
  SdkErrorCode.RequestTimeout,
  SdkErrorCode.ConnectionClosed,
];

/**
 * Whether the same request may succeed later: nobody answered, the server said that it cannot now, or another call found their
 * client broken.
 */
function mayPass(error: unknown): boolean {
  if (error instanceof ClientDiscarded) return true;
  const status = statusIn(error);
  if (status !== undefined) return status === 429 || status >= 500;
  if (error instanceof ProtocolError) return error.code === INTERNAL_ERROR;
  if (error instanceof SdkError) return NO_ANSWER_CODES.includes(error.code) || mayPass(error.cause);
  const { name, cause } = Object(error) as Partial<Error>;
  // A `fetch` that fails, or whose answer breaks off, has the reason as its cause.
  return name === "AbortError" || name === "TimeoutError" || (error instanceof TypeError && cause !== undefined);
}
