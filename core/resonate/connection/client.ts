/** The Resonate client of edge, worker and doctor: a POST for each request, an SSE connection for pushed messages. */
import { jsonOf } from "../json.ts";
import { backoff, pause } from "../pacing/backoff.ts";
import { Connections } from "./connections.ts";
import type { StoreEndpoint } from "./endpoint.ts";
import {
  isTimeout,
  ResonateRefused,
  ResonateUnavailable,
  refusal,
  SearchRefused,
  throwUndecryptable,
  throwUnreachable,
} from "./failures.ts";
import {
  type Codec,
  type OperationAnswer,
  type OperationKind,
  PROTOCOL_VERSION,
  type PromiseRecord,
  type RequestData,
  type SearchPage,
} from "./protocol.ts";

/** How long a request, or the opening of a connection, may take by default, in milliseconds. */
const REQUEST_TIMEOUT_MS = 10_000;
const READY_TIMEOUT_MS = 3_000;

/**
 * How a request is repeated after a temporary failure, with pauses in milliseconds. On Postgres the server answers 500 to some
 * calls when several concern the same promise at the same time.
 */
const RETRIES = { times: 4, base: 20, max: 200 };

/** The same for callers that would rather wait than fail. */
const TIMED_RETRIES = { base: 250, max: 500 };

/** The statuses that tell the state of a promise or task. Every other status is a failure. */
const ANSWER_STATUSES: readonly number[] = [200, 300, 404, 409, 422];

/** An answer of the server. */
interface Envelope {
  head?: { status: number };
  data?: unknown;
}

type Operation = "promise.create" | "promise.get" | "promise.settle" | "promise.register_listener";

/**
 * The kind and data of a call about one promise. `maxValue`: how many characters of JSON a value may have where the server leaves
 * out longer ones; see {@link PromiseRecord.omitted}.
 */
export type Call = { [K in Operation]: { kind: K; data: RequestData<K>; maxValue?: number | undefined } }[Operation];

export type Search = RequestData<"promise.search">;

/**
 * Posts a request and resolves to its answer. Rejects with the reason of `signal`, or after `timeout` milliseconds with an
 * error called `TimeoutError`. `type`: the content type of the body; JSON by default.
 */
export type Exchange = (
  url: string,
  body: string,
  options: { timeout: number; signal?: AbortSignal | undefined; type?: string },
) => Promise<{ status: number; text: string }>;

export interface ClientOptions extends Pick<StoreEndpoint, "url" | "token" | "fetch" | "codec"> {
  /** Sends requests in place of `fetch`, if something faster exists. */
  exchange?: Exchange | undefined;
  /** How long a request, or the opening of a connection, may take, in milliseconds. Default: 10 s. */
  timeout?: number;
  /** Called after each request, including repetitions, with the status of the answer, or undefined without an answer. */
  onRequest?(kind: OperationKind, status: number | undefined): void;
}

interface SendOptions {
  /** The root promise that the request is about. */
  origin?: string;
  signal?: AbortSignal | undefined;
  /**
   * For how many milliseconds a request is repeated when it fails temporarily or times out. Default: it is repeated a few times
   * within a second, and not after a timeout.
   */
  retryForMs?: number | undefined;
}

/** The requests of a client, without its connections. */
export type Requests = Pick<ResonateClient, "call" | "send" | "search" | "readMany" | "readsMany">;

export class ResonateClient {
  readonly #url: string;
  readonly #token: string | undefined;
  readonly #timeout: number;
  readonly #onRequest: ClientOptions["onRequest"];
  readonly #fetcher: typeof fetch;
  readonly #exchange: Exchange;
  readonly #codec: Codec | undefined;
  #readsMany: boolean | undefined;
  /** The connections over which the server pushes messages. */
  readonly connections: Connections;

  constructor({ url, token, codec, fetch: fetcher, exchange, timeout = REQUEST_TIMEOUT_MS, onRequest }: ClientOptions) {
    this.#fetcher = async (...request) => (fetcher ?? fetch)(...request);
    this.#exchange = exchange ?? fetchExchange(this.#fetcher);
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
    this.#timeout = timeout;
    this.#onRequest = onRequest;
    this.#codec = codec;
    this.connections = new Connections({ token, timeout, codec, fetch: (path, init) => this.#fetch(path, init) });
  }

  /**
   * Sends a request, repeats it after temporary failures, and resolves to its answer.
   *
   * @throws {ResonateRefused} at once
   * @throws {ResonateUnavailable}
   */
  async send<K extends OperationKind>(
    kind: K,
    data: RequestData<K>,
    options: SendOptions = {},
  ): Promise<OperationAnswer<K>> {
    const { signal, retryForMs } = options;
    const mayRepeat = (error: unknown) =>
      error instanceof ResonateUnavailable &&
      error.isTemporary &&
      (retryForMs !== undefined || !isTimeout(error.cause)) &&
      !signal?.aborted;
    const startedAt = Date.now();
    for (let failures = 1; ; failures++) {
      try {
        return await this.#attempt(kind, data, options);
      } catch (error) {
        const isExhausted = retryForMs === undefined ? failures > RETRIES.times : Date.now() - startedAt > retryForMs;
        if (isExhausted || !mayRepeat(error)) throw error;
      }
      await pause(backoff(failures, retryForMs === undefined ? RETRIES : TIMED_RETRIES), signal);
    }
  }

  /**
   * Sends a call and resolves to the promise in its answer; undefined for 404 and 422: it does not exist, or cannot be listened
   * to. `retryForMs` is that of {@link SendOptions}.
   *
   * @throws {ResonateUnavailable}
   */
  async call({ kind, data }: Call, signal?: AbortSignal, retryForMs?: number): Promise<PromiseRecord | undefined> {
    const answer = await this.send(kind, data, { signal, retryForMs });
    if (answer.status === 200) return answer.data.promise;
    if (answer.status === 404 || answer.status === 422) return undefined;
    throw refusal(answer.status);
  }

  /** Whether the server reads several promises at once; undefined before the first try. */
  readsMany(): boolean | undefined {
    return this.#readsMany;
  }

  /**
   * Reads promises, or those at the beginning if all are too large for one answer. A promise that cannot be decrypted is a rejected
   * result. Undefined if the server does not offer this.
   *
   * @throws {ResonateUnavailable}
   */
  async readMany(
    data: RequestData<"promise.read">,
    signal?: AbortSignal,
  ): Promise<PromiseSettledResult<PromiseRecord | undefined>[] | undefined> {
    try {
      const answer = await this.send("promise.read", data, { signal });
      if (answer.status !== 200) throw refusal(answer.status);
      this.#readsMany = true;
      const { records } = answer.data;
      return await Promise.allSettled(records.map(async (record) => (record ? this.decodeRecord(record) : undefined)));
    } catch (error) {
      if (!(error instanceof ResonateRefused) || error.status !== 400) throw error;
      this.#readsMany = false;
      return undefined;
    }
  }

  /**
   * The promises that match. If few match, the server has to look through all its promises.
   *
   * @throws {SearchRefused}
   * @throws {ResonateUnavailable}
   */
  async search(search: Search, signal?: AbortSignal): Promise<SearchPage> {
    try {
      const answer = await this.send("promise.search", search, { signal });
      if (answer.status === 200) return answer.data;
      throw refusal(answer.status);
    } catch (error) {
      if (error instanceof ResonateRefused && error.status === 403) throw new SearchRefused();
      if (!(error instanceof Error) || !isTimeout(error.cause)) throw error;
      throw new ResonateUnavailable("it did not search all its jobs in time; look for one by its name", {
        cause: error.cause,
      });
    }
  }

  /** Resolves if the server says that it is ready. @throws {ResonateUnavailable} otherwise */
  async ready(): Promise<void> {
    const response = await this.#fetch("/ready", { signal: AbortSignal.timeout(READY_TIMEOUT_MS) });
    await response.body?.cancel();
    if (!response.ok) throw refusal(response.status);
  }

  /** Sends one request and returns the raw answer. Rejects with fetch's error. */
  async post<K extends OperationKind>(kind: K, data: RequestData<K>, options: SendOptions = {}): Promise<Response> {
    const body = await this.#encodeRequest(kind, data, options);
    return this.#fetcher(this.#url, postOf(body, { timeout: this.#timeout, signal: options.signal }));
  }

  async #encodeRequest(kind: OperationKind, data: object, { origin }: SendOptions): Promise<string> {
    const sent = this.#codec?.encode ? await this.#codec.encode(data) : data;
    const head = {
      corrId: crypto.randomUUID(),
      version: PROTOCOL_VERSION,
      ...(this.#token && { auth: this.#token }),
      ...(origin !== undefined && { "resonate:origin": origin }),
    };
    return JSON.stringify({ kind, head, data: withHeads(sent) });
  }

  /** Decodes a record. @throws {ResonateRefused} if that fails */
  decodeRecord(record: PromiseRecord): Promise<PromiseRecord> {
    return this.#codec?.decodeRecord(record).catch(() => throwUndecryptable(record)) ?? Promise.resolve(record);
  }

  /** @throws {ResonateUnavailable} */
  async #attempt<K extends OperationKind>(
    kind: K,
    data: RequestData<K>,
    options: SendOptions,
  ): Promise<OperationAnswer<K>> {
    let status: number | undefined;
    try {
      const fetchOptions = { timeout: this.#timeout, signal: options.signal };
      const { status: code, text } = await this.#encodeRequest(kind, data, options)
        .then((body) => this.#exchange(this.#url, body, fetchOptions))
        .catch(throwUnreachable);
      const { head, data: received } = Object(jsonOf(text)) as Envelope;
      const isEnvelope = typeof head?.status === "number";
      status = isEnvelope ? head.status : code;
      if (!isEnvelope || !ANSWER_STATUSES.includes(status)) throw refusal(status);
      const decoded =
        this.#codec && text.includes(this.#codec.mark)
          ? await this.#codec.decode(received).catch(() => throwUndecryptable(Object(received).promise))
          : received;
      return { status, data: decoded } as OperationAnswer<K>;
    } finally {
      this.#onRequest?.(kind, status);
    }
  }

  #fetch(path: string, init: RequestInit): Promise<Response> {
    return this.#fetcher(this.#url + path, init).catch(throwUnreachable);
  }
}

/** Sends requests by `fetch`. */
const fetchExchange =
  (fetcher: typeof fetch): Exchange =>
  async (url, body, options) => {
    const response = await fetcher(url, postOf(body, options));
    return { status: response.status, text: await response.text() };
  };

const postOf = (body: string, { timeout, signal }: Parameters<Exchange>[2]): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body,
  signal: signal ? AbortSignal.any([signal, AbortSignal.timeout(timeout)]) : AbortSignal.timeout(timeout),
});

/** Gives each request within a request a head, which must be there but is not read. */
function withHeads(data: object): object {
  const head = { corrId: "", version: PROTOCOL_VERSION };
  if ("action" in data) return { ...data, action: { head, ...(data.action as object) } };
  if ("actions" in data) return { ...data, actions: (data.actions as object[]).map((action) => ({ head, ...action })) };
  return data;
}
