/** The SSE connections over which the Resonate server pushes messages. */
import { createParser } from "eventsource-parser";
import { pause, persist } from "../pacing/backoff.ts";
import { ResonateUnavailable, refusal } from "./failures.ts";
import { type Codec, type Message, parseMessage } from "./protocol.ts";

/** The pauses before a lost or refused connection is opened again, in milliseconds. */
const RECONNECT_MS = { base: 200, max: 5_000 };

/**
 * How long a connection may be silent before it counts as dead, in milliseconds. The embedded server writes a comment every
 * 5 s. The standalone server writes nothing, so a quiet connection to it is replaced as a precaution.
 */
const MAX_SILENCE_MS = 15_000;

/** How long the replacement of a quiet connection may take to open, in milliseconds. */
const RENEWAL_TIMEOUT_MS = 4_000;

/** How long a replaced connection is still read, for messages that are on their way, in milliseconds. */
const LINGER_MS = 1_000;

/** An open SSE connection. The server pushes each promise that has a listener at `address` when it settles. */
export interface Channel {
  address: string;
  /** Resolves when the connection ends: with the error, or undefined when the server or `signal` ended it. */
  closed: Promise<Error | undefined>;
}

interface OpenOptions {
  /** The address of the connection: messages to `group` go to any connection of the group, messages to `id` to this one. */
  group: string;
  id: string;
  onMessage(message: Message): void;
  signal: AbortSignal;
  /** How long the connection may be silent before it counts as dead, in milliseconds. Default: 15 s. */
  silence?: number;
  /** Called after `silence`, unless the server is known to write comments to idle connections. */
  onQuiet?(): void;
  /** How long the opening may take, in milliseconds. */
  timeout?: number | undefined;
}

interface ListenOptions extends Omit<OpenOptions, "onQuiet" | "timeout"> {
  /** Called each time a connection is open, with its address. Listeners at an earlier address hear nothing more. */
  onConnect?(address: string): void;
  /** Called each time a connection is lost or fails to open, with the reason unless the server ended it. */
  onDisconnect?(reason: Error | undefined): void;
}

interface ServerAccess {
  token: string | undefined;
  /** How long the opening of a connection may take, in milliseconds. */
  timeout: number;
  codec: Codec | undefined;
  /** A request to a path of the server. @throws {ResonateUnavailable} */
  fetch(path: string, init: RequestInit): Promise<Response>;
}

export class Connections {
  readonly #server: ServerAccess;
  /** Whether the server is known to write comments to idle connections. */
  #isKeptAlive = false;

  constructor(server: ServerAccess) {
    this.#server = server;
  }

  /**
   * Opens one connection, which is not opened again when it is lost. It must be open before a listener is registered, as the
   * server drops messages to an address without a connection.
   *
   * @throws {ResonateUnavailable} when it is refused (a server has a limited number of connections) or not open in time
   */
  async open(options: OpenOptions): Promise<Channel> {
    const { group, id, onMessage, signal, silence = MAX_SILENCE_MS, onQuiet, timeout = this.#server.timeout } = options;
    const ended = new AbortController();
    const opening = setTimeout(() => ended.abort(new DOMException("no answer in time", "TimeoutError")), timeout);
    const path = `/poll/${encodeURIComponent(group)}/${encodeURIComponent(id)}`;
    const headers: Record<string, string> = { accept: "text/event-stream" };
    const { token, codec } = this.#server;
    if (token) headers.authorization = `Bearer ${token}`;
    let body: ReadableStream<Uint8Array>;
    try {
      const response = await this.#server.fetch(path, { headers, signal: AbortSignal.any([signal, ended.signal]) });
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
      if (!response.ok || !response.body || !isStream) {
        ended.abort();
        throw refusal(response.status);
      }
      body = response.body;
    } finally {
      clearTimeout(opening);
    }
    const onEvent = ({ data }: { data: string }) => {
      const message = parseMessage(data);
      if (message?.kind === "unblock" && codec && data.includes(codec.mark)) {
        // A message that cannot be decrypted is dropped: its waiters read the promise after a while, and learn why.
        const opened = codec.decodeRecord(message.promise);
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
    const closed = readEvents(body, { onEvent, onComment, onSilence, silence, signal }).finally(() => ended.abort());
    return { address: `poll://uni@${group}/${id}`, closed };
  }

  /**
   * Stays connected until `signal` aborts: a connection that is lost, refused or silent is opened again. If the server does not
   * write comments, a quiet connection is closed only after its replacement is open.
   */
  listen({ onConnect, onDisconnect, ...options }: ListenOptions): Promise<void> {
    const { signal, id } = options;
    let openedAt = 0;
    /** Opens another connection; `quiet` resolves when it falls silent. */
    const connect = async (timeout?: number) => {
      const over = new AbortController();
      const quiet = Promise.withResolvers<undefined>();
      const channel = await this.open({
        ...options,
        // On a server that writes comments a new connection replaces the old one with the same id. Any other server would go on
        // sending to the old one, even if it is dead.
        id: this.#isKeptAlive || openedAt === 0 ? id : `${id}.${openedAt}`,
        signal: AbortSignal.any([signal, over.signal]),
        onQuiet: () => quiet.resolve(undefined),
        timeout,
      });
      openedAt += 1;
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
          const next = await connect(Math.min(RENEWAL_TIMEOUT_MS, this.#server.timeout)).catch((error) => {
            if (error instanceof ResonateUnavailable && error.status === 503) return undefined;
            quiet.close();
            throw error;
          });
          if (next) {
            current = next;
            setTimeout(quiet.close, LINGER_MS);
            onConnect?.(current.address);
          } else {
            // The server answers but has no room for a second connection, so the first may still be alive.
            current = { ...quiet, quiet: pause(options.silence ?? MAX_SILENCE_MS, signal).then(() => undefined) };
          }
        }
        reason = end.reason;
      } catch (error) {
        if (!(error instanceof ResonateUnavailable)) throw error;
        reason = error;
      }
      onDisconnect?.(signal.aborted ? undefined : reason);
    };
    return persist(attempt, { signal, ...RECONNECT_MS });
  }
}

interface ReadOptions {
  onEvent(event: { data: string }): void;
  onComment(): void;
  /** Called after `silence`, in milliseconds; returns whether to go on reading. */
  onSilence(): boolean;
  silence: number;
  signal: AbortSignal;
}

/**
 * Reads the server-sent events of a body until it ends, fails, is silent for too long or `signal` aborts. Resolves to the
 * error that ended it.
 */
async function readEvents(
  body: ReadableStream<Uint8Array>,
  { onEvent, onComment, onSilence, silence, signal }: ReadOptions,
): Promise<Error | undefined> {
  const parser = createParser({ onEvent, onComment });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let silent: Error | undefined;
  const beSilent = () => {
    if (onSilence()) return;
    silent = new Error(`nothing came for ${Math.round(silence / 1_000)} s`);
    void reader.cancel().catch(() => {});
  };
  for (;;) {
    // Uses the monotonic clock: a timer may fire early when the machine's time is changed.
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
      parser.feed(decoder.decode(value, { stream: true }));
    } catch (error) {
      return signal.aborted || !(error instanceof Error) ? undefined : error;
    } finally {
      clearTimeout(timer);
    }
  }
}
