/** Resonate's protocol as the edge speaks it: one POST a call, one SSE connection for what is pushed. */
import type { PromiseRecord, Request as ResonateRequest, Response as ResonateResponse } from "@resonatehq/sdk";
import { createParser } from "eventsource-parser";
import pRetry from "p-retry";

/** The version of the protocol. */
const VERSION = "2026-04-01";

/** How long one call may take, in milliseconds. */
const CALL_TIMEOUT = 10_000;

/**
 * How a call that failed in passing is repeated, pauses in milliseconds. On Postgres the server answers 500 to some of
 * several calls on one promise at the same time.
 */
const REPEAT = { retries: 3, minTimeout: 20, maxTimeout: 200, factor: 3, randomize: true };

/** The server could not be reached or could not answer. The same call is safe to repeat: every operation here is idempotent. */
export class ResonateUnavailable extends Error {
  override name = "ResonateUnavailable";
  /** Whether the same call may well succeed a moment later. */
  readonly inPassing: boolean;

  constructor(message: string, { cause, inPassing = false }: { cause?: unknown; inPassing?: boolean } = {}) {
    super(message, { cause });
    this.inPassing = inPassing;
  }
}

/** The server does not let this deployment's token search: one that is limited to a namespace may not. */
export class SearchRefused extends Error {
  override name = "SearchRefused";
}

/** An open SSE connection, over which the server pushes the promises listened to at `address` as they settle. */
export interface Channel {
  address: string;
  /** Resolves when the connection ends, for whatever reason. */
  closed: Promise<void>;
}

type Operation = "promise.create" | "promise.get" | "promise.settle" | "promise.register_listener";
type OfKind<K> = Pick<Extract<ResonateRequest, { kind: K }>, "kind" | "data">;

/** The kind and data of a call that is about one promise. */
export type Call = { [K in Operation]: OfKind<K> }[Operation];

/** What promises to search for. */
export type Search = OfKind<"promise.search">["data"];

type AnyCall = Call | OfKind<"promise.search">;

interface Answer {
  status: number;
  data: unknown;
}

/** Promises that were found, by id; with a cursor there are more. */
export interface Found {
  promises: PromiseRecord[];
  cursor?: string;
}

export class Wire {
  readonly #url: string;
  readonly #token: string | undefined;

  constructor(url: string, token: string | undefined) {
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
  }

  /**
   * The promise a call answers with. Undefined for 404 and 422: there is none, or none that can be listened to.
   *
   * @throws {ResonateUnavailable}
   */
  async call(call: Call, signal?: AbortSignal): Promise<PromiseRecord | undefined> {
    const { status, data } = await this.#ask(call, signal);
    if (status === 200) return (data as { promise: PromiseRecord }).promise;
    if (status === 404 || status === 422) return undefined;
    throw refusal(status);
  }

  /**
   * The promises that match.
   *
   * @throws {SearchRefused}
   * @throws {ResonateUnavailable}
   */
  async search(search: Search, signal?: AbortSignal): Promise<Found> {
    const { status, data } = await this.#ask({ kind: "promise.search", data: search }, signal);
    if (status === 200) return data as Found;
    throw status === 403 ? new SearchRefused() : refusal(status);
  }

  /**
   * Opens the SSE connection. It must be open before a listener is registered: the server drops a message to an
   * address nobody is connected to.
   *
   * @throws {ResonateUnavailable} when it is refused (a server serves a bounded number of connections) or cannot be made
   */
  async open(onSettled: (promise: PromiseRecord) => void, signal: AbortSignal): Promise<Channel> {
    const id = crypto.randomUUID();
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (this.#token) headers.authorization = `Bearer ${this.#token}`;
    const response = await this.#fetch(`/poll/edge/${id}`, { headers, signal });
    if (!response.ok || !response.body) throw refusal(response.status);
    const parser = createParser({
      onEvent: ({ data }) => {
        const message = JSON.parse(data) as { kind?: string; data?: { promise?: PromiseRecord } };
        if (message.kind === "unblock" && message.data?.promise) onSettled(message.data.promise);
      },
    });
    return { address: `poll://uni@edge/${id}`, closed: pump(response.body, (text) => parser.feed(text)) };
  }

  /** Whether the server says that it is ready. @throws {ResonateUnavailable} */
  async ready(): Promise<void> {
    const response = await this.#fetch("/ready", { signal: AbortSignal.timeout(3_000) });
    await response.body?.cancel();
    if (!response.ok) throw refusal(response.status);
  }

  /** The status and data of the answer, asked for again where that may well help. */
  async #ask(request: AnyCall, signal: AbortSignal | undefined): Promise<Answer> {
    try {
      return await this.#send(request, signal);
    } catch (error) {
      if (!isInPassing(error) || signal?.aborted) throw error;
      return pRetry(() => this.#send(request, signal), {
        ...REPEAT,
        shouldRetry: (context) => isInPassing(context.error) && !signal?.aborted,
      });
    }
  }

  async #send({ kind, data }: AnyCall, signal: AbortSignal | undefined): Promise<Answer> {
    const timeout = AbortSignal.timeout(CALL_TIMEOUT);
    const head = { corrId: crypto.randomUUID(), version: VERSION, ...(this.#token && { auth: this.#token }) };
    const response = await this.#fetch("", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ kind, head, data }),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    const envelope = await (response.json() as Promise<ResonateResponse>).catch(() => undefined);
    const status = envelope?.head?.status ?? response.status;
    if (!envelope || status === 429 || status >= 500) throw refusal(status);
    return { status, data: envelope.data };
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(this.#url + path, init);
    } catch (error) {
      const timedOut = error instanceof Error && error.name === "TimeoutError";
      const reason = timedOut ? "it did not answer in time" : "it could not be reached";
      throw new ResonateUnavailable(reason, { cause: error, inPassing: !timedOut });
    }
  }
}

function isInPassing(error: unknown): boolean {
  return error instanceof ResonateUnavailable && error.inPassing;
}

/** Says no more than the status: what else the server wrote may hold what the promises do. */
function refusal(status: number): ResonateUnavailable {
  const inPassing = status === 429 || status >= 500;
  if (status === 401 || status === 403) return new ResonateUnavailable("it refused this deployment's token");
  if (status === 429 || status === 503) return new ResonateUnavailable("it is at capacity", { inPassing });
  return new ResonateUnavailable(`it answered ${status}`, { inPassing });
}

/** Feeds a body to `sink` until it ends, fails or is aborted. */
async function pump(body: ReadableStream<Uint8Array>, sink: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      sink(decoder.decode(value, { stream: true }));
    }
  } catch {
    // A lost connection ends the channel; whoever waits on it reads the promises instead.
  }
}
