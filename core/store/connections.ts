/** The SSE connections over which the Resonate server pushes what it has to say. */
import { createParser } from "eventsource-parser";
import { ConnectionSilent, ResonateUnavailable, refusal } from "./failures.ts";
import { pause, persist } from "./pacing/backoff.ts";
import { type Message, parseMessage } from "./protocol.ts";
import { maySeal, type Sealing } from "./sealing.ts";

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

/** An open SSE connection, over which the server pushes the promises listened to at `address` as they settle. */
export interface Channel {
  address: string;
  /** Resolves when the connection ends, with what ended it; undefined when the server did, or its own `signal`. */
  closed: Promise<Error | undefined>;
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

/** Where connections are made, and what they need. */
export interface Reach {
  token: string | undefined;
  /** How long to open one may take, in milliseconds. */
  timeout: number;
  sealing: Sealing;
  /** A request to a path of the server. @throws {ResonateUnavailable} */
  fetch(path: string, init: RequestInit): Promise<Response>;
}

export class Connections {
  readonly #reach: Reach;
  /** Whether the server has shown that it writes to connections over which nothing else comes. */
  #isKeptAlive = false;

  constructor(reach: Reach) {
    this.#reach = reach;
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
    const { group, id, onMessage, signal, silence = SILENCE, onQuiet, timeout = this.#reach.timeout } = options;
    const ended = new AbortController();
    const opening = setTimeout(() => ended.abort(new DOMException("no answer in time", "TimeoutError")), timeout);
    const path = `/poll/${encodeURIComponent(group)}/${encodeURIComponent(id)}`;
    const headers: Record<string, string> = { accept: "text/event-stream" };
    const { token, sealing } = this.#reach;
    if (token) headers.authorization = `Bearer ${token}`;
    let body: ReadableStream<Uint8Array>;
    try {
      const response = await this.#reach.fetch(path, { headers, signal: AbortSignal.any([signal, ended.signal]) });
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
        const opened = sealing.record(message.promise);
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
          const next = await connect(Math.min(RENEWAL, this.#reach.timeout)).catch((error) => {
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
