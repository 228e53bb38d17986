/** The Resonate client of edge, worker and doctor: one POST a request, one SSE connection for what is pushed. */
import { createParser } from "eventsource-parser";
import { backoff, pause, persist } from "./backoff.ts";
import {
  type Found,
  type Message,
  type OperationAnswer,
  type OperationKind,
  PROTOCOL_VERSION,
  type PromiseRecord,
  parseMessage,
  type RequestData,
} from "./protocol.ts";
import { maySeal, Sealing } from "./sealed.ts";

/** How long one request, or opening a connection, may take unless told otherwise, in milliseconds. */
const TIMEOUT = 10_000;
const READY_TIMEOUT = 3_000;

/**
 * How a request that failed in passing is repeated, pauses in milliseconds. On Postgres the server answers 500 to some
 * of several calls on one promise at the same time.
 */
const REPEAT = { times: 4, base: 20, max: 200 };

/** The same for whoever would rather wait than fail. */
const REPEAT_PATIENTLY = { base: 250, max: 500 };

/** The pauses before a connection that was lost or refused is made again, in milliseconds. */
const RECONNECT = { base: 200, max: 5_000 };

/**
 * How long a connection may be silent before it is taken for dead, in milliseconds. The embedded server writes a comment
 * every 5 s; the real one writes nothing, so that there a connection that has only been quiet is renewed.
 */
const SILENCE = 15_000;

/** How long the connection that is to replace a quiet one may take to open, in milliseconds. */
const RENEWAL = 4_000;

/** How long a connection that has been replaced is still read: for what was on its way, in milliseconds. */
const LINGER = 1_000;

interface Failure {
  cause?: unknown;
  /** What the server answered, when it did. */
  status?: number | undefined;
  inPassing?: boolean;
}

/** The server could not be reached or could not answer. The same call is safe to repeat: every operation here is idempotent. */
export class ResonateUnavailable extends Error {
  override name = "ResonateUnavailable";
  /** The status it answered with; undefined without an answer. */
  readonly status: number | undefined;
  /** Whether the same call may well succeed a moment later. */
  readonly inPassing: boolean;

  constructor(message: string, { cause, status, inPassing = false }: Failure = {}) {
    super(message, { cause });
    this.status = status;
    this.inPassing = inPassing;
  }
}

/** The server refuses the request, and will refuse it again: its token (401, 403), its form (400) or its size (413). */
export class ResonateRefused extends ResonateUnavailable {
  override name = "ResonateRefused";
}

/** The server does not let this deployment's token search: one that is limited to a namespace may not. */
export class SearchRefused extends Error {
  override name = "SearchRefused";
}

/** Nothing has come over a connection for so long that it is taken for dead. */
export class ConnectionSilent extends Error {
  override name = "ConnectionSilent";
}

/** An open SSE connection, over which the server pushes the promises listened to at `address` as they settle. */
export interface Channel {
  address: string;
  /** Resolves when the connection ends, with what ended it; undefined when the server did, or its own `signal`. */
  closed: Promise<Error | undefined>;
}

type Operation = "promise.create" | "promise.get" | "promise.settle" | "promise.register_listener";

/** The kind and data of a call that is about one promise. */
export type Call = { [K in Operation]: { kind: K; data: RequestData<K> } }[Operation];

/** What promises to search for. */
export type Search = RequestData<"promise.search">;

/**
 * Posts a request and resolves to what it is answered. Rejects with what `signal` was aborted with, or with an error called
 * `TimeoutError` after so many milliseconds.
 */
export type Exchange = (
  url: string,
  body: string,
  options: { timeout: number; signal?: AbortSignal | undefined },
) => Promise<{ status: number; text: string }>;

export interface ClientOptions {
  /** The server's base URL. */
  url: string;
  token?: string | undefined;
  /** What sends calls where there is something quicker than `fetch`. */
  exchange?: Exchange | undefined;
  /** What sends the requests, where it is not the network. */
  fetch?: typeof fetch | undefined;
  /** The keys with which what promises hold is encrypted: see `sealed.ts`. Without any it is not. */
  encryptionKeys?: string | undefined;
  /** How long one request, or opening a connection, may take, in milliseconds; 10 s. */
  timeout?: number;
  /** Told of each request sent, repeated ones too: the status of its answer, or undefined without one. */
  onRequest?(kind: OperationKind, status: number | undefined): void;
}

export interface SendOptions {
  /** The root promise that the request is about. */
  origin?: string;
  signal?: AbortSignal | undefined;
  /**
   * How long, in milliseconds, a request that fails in passing, or is not answered in time, is repeated; a few times
   * within a second when left out.
   */
  patience?: number;
}

export interface OpenOptions {
  /** The address of the connection: messages to `group` go to one of the group's connections, to `id` to this one. */
  group: string;
  id: string;
  onMessage(message: Message): void;
  signal: AbortSignal;
  /** How long nothing at all may come before the connection is taken for dead, in milliseconds; 15 s. */
  silence?: number;
}

interface StreamOptions extends OpenOptions {
  /** Called when nothing has come for `silence` where the server has not shown that it would write. */
  onQuiet?(): void;
  timeout?: number;
}

export interface ListenOptions extends OpenOptions {
  /** Called each time a connection is open, with its address: to what was listened to at another one, nothing comes. */
  onConnect?(address: string): void;
  /** Called each time it was lost, with the reason unless the server ended it, and each time it could not be made. */
  onDisconnect?(reason: Error | undefined): void;
}

export class ResonateClient {
  readonly #url: string;
  readonly #token: string | undefined;
  readonly #timeout: number;
  readonly #onRequest: ClientOptions["onRequest"];
  readonly #fetcher: typeof fetch;
  readonly #exchange: Exchange | undefined;
  readonly #sealing: Sealing;
  /** Whether the server has shown that it writes to connections over which nothing else comes. */
  #isKeptAlive = false;

  constructor({ url, token, encryptionKeys, fetch: fetcher, exchange, timeout = TIMEOUT, onRequest }: ClientOptions) {
    this.#exchange = exchange;
    this.#fetcher = (...request) => (fetcher ?? fetch)(...request);
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
    this.#timeout = timeout;
    this.#onRequest = onRequest;
    this.#sealing = new Sealing(encryptionKeys);
  }

  /**
   * Sends one request of whatever kind, again where that may well help, and resolves to what it is answered.
   *
   * @throws {ResonateRefused} at once
   * @throws {ResonateUnavailable}
   */
  async send<K extends OperationKind>(
    kind: K,
    data: RequestData<K>,
    options: SendOptions = {},
  ): Promise<OperationAnswer<K>> {
    const { signal, patience } = options;
    const mayRepeat = (error: unknown) =>
      error instanceof ResonateUnavailable &&
      error.inPassing &&
      (patience !== undefined || !isTimeout(error.cause)) &&
      !signal?.aborted;
    const begun = Date.now();
    for (let failures = 1; ; failures++) {
      try {
        return await this.#attempt(kind, data, options);
      } catch (error) {
        const isOver = patience === undefined ? failures > REPEAT.times : Date.now() - begun > patience;
        if (isOver || !mayRepeat(error)) throw error;
      }
      await pause(backoff(failures, patience === undefined ? REPEAT : REPEAT_PATIENTLY), signal);
    }
  }

  /**
   * The promise a call answers with. Undefined for 404 and 422: there is none, or none that can be listened to.
   * `patience` is that of {@link SendOptions}.
   *
   * @throws {ResonateUnavailable}
   */
  async call({ kind, data }: Call, signal?: AbortSignal, patience?: number): Promise<PromiseRecord | undefined> {
    const answer = await this.send(kind, data, { signal, ...(patience !== undefined && { patience }) });
    if (answer.status === 200) return answer.data.promise;
    if (answer.status === 404 || answer.status === 422) return undefined;
    throw refusal(answer.status);
  }

  /**
   * The promises that match. Where few do, the server looks at all that it has.
   *
   * @throws {SearchRefused}
   * @throws {ResonateUnavailable}
   */
  async search(search: Search, signal?: AbortSignal): Promise<Found> {
    try {
      const answer = await this.send("promise.search", search, { signal });
      if (answer.status === 200) return answer.data;
      throw refusal(answer.status);
    } catch (error) {
      if (error instanceof ResonateRefused && error.status === 403) throw new SearchRefused();
      if (!(error instanceof Error) || !isTimeout(error.cause)) throw error;
      throw new ResonateUnavailable("it did not search all its jobs in time; one is found quicker by its name", {
        cause: error.cause,
      });
    }
  }

  /** Whether the server says that it is ready. @throws {ResonateUnavailable} */
  async ready(): Promise<void> {
    const response = await this.#fetch("/ready", { signal: AbortSignal.timeout(READY_TIMEOUT) });
    await response.body?.cancel();
    if (!response.ok) throw refusal(response.status);
  }

  /**
   * One request, its answer as it is: for whoever wants the server's own words. Rejects with fetch's error.
   */
  async post<K extends OperationKind>(kind: K, data: RequestData<K>, options: SendOptions = {}): Promise<Response> {
    return this.#post(await this.#written(kind, data, options), options);
  }

  #post(body: string, { signal }: SendOptions): Promise<Response> {
    const timeout = AbortSignal.timeout(this.#timeout);
    return this.#fetcher(this.#url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
  }

  /** A request as it goes over the wire. */
  async #written(kind: OperationKind, data: object, { origin }: SendOptions): Promise<string> {
    const sent = this.#sealing.isOn ? await this.#sealing.seal(data) : data;
    const head = {
      corrId: crypto.randomUUID(),
      version: PROTOCOL_VERSION,
      ...(this.#token && { auth: this.#token }),
      ...(origin !== undefined && { "resonate:origin": origin }),
    };
    return JSON.stringify({ kind, head, data: withHeads(sent) });
  }

  async #answered(kind: OperationKind, data: object, options: SendOptions): ReturnType<Exchange> {
    const body = await this.#written(kind, data, options);
    if (this.#exchange) return this.#exchange(this.#url, body, { timeout: this.#timeout, signal: options.signal });
    const response = await this.#post(body, options);
    return { status: response.status, text: await response.text() };
  }

  /**
   * A promise as its clients have it, from what the server holds of it.
   *
   * @throws {Error} when it was encrypted with a key that is not one of these
   */
  opened(record: PromiseRecord): Promise<PromiseRecord> {
    return this.#sealing.record(record);
  }

  /**
   * Opens one connection for what is pushed; a lost one is not made again. It must be open before a listener is
   * registered: the server drops a message to an address nobody is connected to.
   *
   * @throws {ResonateUnavailable} when it is refused (a server serves a bounded number), or not open in time
   */
  open(options: OpenOptions): Promise<Channel> {
    return this.#open(options);
  }

  async #open(options: StreamOptions): Promise<Channel> {
    const { group, id, onMessage, signal, silence = SILENCE, onQuiet, timeout = this.#timeout } = options;
    const ended = new AbortController();
    const opening = setTimeout(() => ended.abort(new DOMException("no answer in time", "TimeoutError")), timeout);
    const path = `/poll/${encodeURIComponent(group)}/${encodeURIComponent(id)}`;
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (this.#token) headers.authorization = `Bearer ${this.#token}`;
    let body: ReadableStream<Uint8Array>;
    try {
      const response = await this.#fetch(path, { headers, signal: AbortSignal.any([signal, ended.signal]) });
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
      if (!response.ok || !response.body || !isStream) {
        ended.abort();
        throw refusal(response.status);
      }
      body = response.body;
    } finally {
      clearTimeout(opening);
    }
    const onData = (data: string) => {
      const message = parseMessage(data);
      if (message?.kind === "unblock" && maySeal(data)) {
        // What cannot be read is not told: whoever waits for it looks after a while, and is told why.
        const opened = this.#sealing.record(message.promise);
        opened.then((promise) => onMessage({ ...message, promise })).catch(() => {});
      } else if (message) onMessage(message);
    };
    const onComment = () => {
      this.#isKeptAlive = true;
    };
    const onSilence = () => {
      if (!onQuiet || this.#isKeptAlive) return false;
      onQuiet();
      return true;
    };
    const closed = readEvents(body, onData, { silence, signal, onComment, onSilence }).finally(() => ended.abort());
    return { address: `poll://uni@${group}/${id}`, closed };
  }

  /**
   * Stays connected until `signal` aborts: a connection that is lost, refused or silent is made again. Where the server
   * does not write by itself, one that has been quiet is replaced by another one, before it is closed.
   */
  listen({ onConnect, onDisconnect, ...options }: ListenOptions): Promise<void> {
    const { signal, id } = options;
    let made = 0;
    /** Opens one more; `quiet` resolves when nothing comes over it. */
    const connect = async (timeout?: number) => {
      const over = new AbortController();
      const quiet = Promise.withResolvers<undefined>();
      const channel = await this.#open({
        ...options,
        // A server that writes by itself lets a connection replace one of the same id. Any other would go on sending to
        // the old one, dead or not.
        id: this.#isKeptAlive || made === 0 ? id : `${id}.${made}`,
        signal: AbortSignal.any([signal, over.signal]),
        onQuiet: () => quiet.resolve(undefined),
        ...(timeout !== undefined && { timeout }),
      });
      made += 1;
      return { ...channel, quiet: quiet.promise, close: () => over.abort() };
    };
    const attempt = async () => {
      let reason: Error | undefined;
      try {
        let current = await connect();
        onConnect?.(current.address);
        const ended = () => Promise.race([current.quiet, current.closed.then((reason) => ({ reason }))]);
        let end = await ended();
        for (; !end; end = await ended()) {
          const quiet = current;
          const next = await connect(Math.min(RENEWAL, this.#timeout)).catch((error) => {
            if (error instanceof ResonateUnavailable && error.status === 503) return undefined;
            quiet.close();
            throw error;
          });
          if (next) {
            current = next;
            setTimeout(quiet.close, LINGER);
            onConnect?.(current.address);
          } else {
            // The server is there, and has no room for a second one: the first may be as good as ever.
            current = { ...quiet, quiet: pause(options.silence ?? SILENCE, signal).then(() => undefined) };
          }
        }
        reason = end.reason;
      } catch (error) {
        if (!(error instanceof ResonateUnavailable)) throw error;
        reason = error;
      }
      onDisconnect?.(signal.aborted ? undefined : reason);
    };
    return persist(attempt, { signal, ...RECONNECT });
  }

  /** @throws {ResonateUnavailable} */
  async #attempt<K extends OperationKind>(
    kind: K,
    data: RequestData<K>,
    options: SendOptions,
  ): Promise<OperationAnswer<K>> {
    let status: number | undefined;
    try {
      const { status: code, text } = await this.#answered(kind, data, options).catch((error) =>
        Promise.reject(unreachable(error)),
      );
      const envelope = parseEnvelope(text);
      status = envelope?.head.status ?? code;
      if (!envelope || !isAnswer(status)) throw refusal(status);
      const opened = maySeal(text) ? await this.#sealing.open(envelope.data).catch(unreadable) : envelope.data;
      return { status, data: opened } as OperationAnswer<K>;
    } finally {
      this.#onRequest?.(kind, status);
    }
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    try {
      return await this.#fetcher(this.#url + path, init);
    } catch (error) {
      throw unreachable(error);
    }
  }
}

/** The statuses that say how it is with a promise or task; every other one is a failure. */
function isAnswer(status: number): boolean {
  return [200, 300, 404, 409, 422].includes(status);
}

/** A request within a request has a head of its own, of which only its presence counts. */
function withHeads(data: object): object {
  const withHead = (action: object) => ({ head: { corrId: "", version: PROTOCOL_VERSION }, ...action });
  if ("action" in data) return { ...data, action: withHead(data.action as object) };
  if ("actions" in data) return { ...data, actions: (data.actions as object[]).map(withHead) };
  return data;
}

function parseEnvelope(text: string): { head: { status: number }; data: unknown } | undefined {
  try {
    const envelope = JSON.parse(text);
    return typeof envelope?.head?.status === "number" ? envelope : undefined;
  } catch {
    return undefined;
  }
}

function unreachable(error: unknown): ResonateUnavailable {
  const reason = isTimeout(error) ? "it did not answer in time" : "it could not be reached";
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return new ResonateUnavailable(reason, { cause, inPassing: true });
}

function unreadable(): never {
  throw new ResonateRefused("what it keeps is encrypted with a key that this deployment does not have");
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === "TimeoutError";
}

/** Says no more than the status: what else the server wrote may hold what the promises do. */
function refusal(status: number): ResonateUnavailable {
  if (status === 401 || status === 403) return new ResonateRefused("it refused this deployment's token", { status });
  if (status === 400) return new ResonateRefused("it refused the request as malformed", { status });
  if (status === 413) return new ResonateRefused("the request is larger than it takes", { status });
  if (status === 429 || status === 503) {
    return new ResonateUnavailable("it is at capacity", { status, inPassing: true });
  }
  return new ResonateUnavailable(`it answered ${status}`, { status, inPassing: status >= 500 && status !== 501 });
}

interface ReadOptions {
  /** In milliseconds. */
  silence: number;
  signal: AbortSignal;
  /** Called with each comment. */
  onComment?(comment: string): void;
  /** Called when nothing has come for so long: whether to go on reading. */
  onSilence?(): boolean;
}

/**
 * Calls `onData` with each server-sent event of a body until it ends, fails, is silent for too long or `signal` aborts;
 * resolves to what ended it.
 */
function readEvents(
  body: ReadableStream<Uint8Array>,
  onData: (data: string) => void,
  { onComment, ...options }: ReadOptions,
): Promise<Error | undefined> {
  const parser = createParser({ onEvent: ({ data }) => onData(data), ...(onComment && { onComment }) });
  return readUntilEnd(body, (text) => parser.feed(text), options);
}

/** Feeds a body to `sink` until it ends, fails, is silent for too long or `signal` aborts; resolves to what ended it. */
async function readUntilEnd(
  body: ReadableStream<Uint8Array>,
  sink: (text: string) => void,
  { silence, signal, onSilence }: ReadOptions,
): Promise<Error | undefined> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let silent: ConnectionSilent | undefined;
  const beSilent = () => {
    if (onSilence?.()) return;
    silent = new ConnectionSilent(`nothing came for ${Math.round(silence / 1_000)} s`);
    void reader.cancel().catch(() => {});
  };
  for (;;) {
    // By a clock that nobody sets: when the time of the machine is moved, a timer may call early.
    const due = performance.now() + silence;
    const look = () => {
      const left = due - performance.now();
      if (left < 2) beSilent();
      else timer = setTimeout(look, left);
    };
    let timer = setTimeout(look, silence);
    try {
      const { done, value } = await reader.read();
      if (done) return silent;
      sink(decoder.decode(value, { stream: true }));
    } catch (error) {
      return signal.aborted || !(error instanceof Error) ? undefined : error;
    } finally {
      clearTimeout(timer);
    }
  }
}
