import type { Channel } from "../../core/resonate/client.ts";
import { ResonateClient, ResonateUnavailable } from "../../core/resonate/client.ts";
import { rootOf } from "../../core/resonate/names.ts";
import type { Message } from "../../core/resonate/protocol.ts";
import { placeOf } from "../../core/resonate/remote-store.ts";
import { readConfig } from "../config.ts";

/** How many wait at once, of one caller and of all; past that they look with pauses. */
const MAX_OF_ONE = 500;
const MAX_WAITING = 5_000;

/** The largest message that is passed on, in characters: one that is larger says what has settled, and is read once more. */
const MAX_MESSAGE = 65_536;

/** How much may wait to be read by one, in bytes, before it is given up. */
const MAX_BEHIND = 2_000_000;

/** How often every stream is written to, in milliseconds: one whose reader has gone is found out by it. */
const KEEP_ALIVE = 15_000;

/** How long the connection is kept when nobody waits any more, and how long a failed one is not tried again, in milliseconds. */
const LINGER = 1_000;
const PAUSE = 500;

/** What a wait begins with. */
export interface Wait {
  /** The promises, by id. What is told of their children is told, too. */
  ids: string[];
  /** Who waits: the caller's key. */
  caller: string;
}

interface Waiter extends Wait {
  controller: ReadableStreamDefaultController<Uint8Array>;
}

interface Connection {
  channel: Promise<Channel>;
  end: AbortController;
}

const encoder = new TextEncoder();

/**
 * The one place of a deployment that connections for settlements are opened from: a Durable Object. Whoever waits, in
 * whatever isolate, is told by it what of his has settled. So the number of connections to the Resonate server does not
 * depend on how many callers wait, and workers have room for theirs. A Worker's entry exports it beside its default export,
 * and `wrangler.toml` binds it as `LISTENER`.
 *
 * It keeps nothing: when it ends, its streams do, and whoever waits looks at his promises and comes back. It is asked by
 * the edge alone, which knows whose promises are whose.
 *
 * @example
 * const entry = { Listener, default: createEdge({ name: "my-server", version: "1.0.0", tools: [waitForSite] }) };
 */
export class Listener {
  readonly #client: ResonateClient;
  readonly #waiters = new Set<Waiter>();
  /** Who waits for a promise, by its id. */
  readonly #byId = new Map<string, Set<Waiter>>();
  #connection: Connection | undefined;
  #failed: { error: ResonateUnavailable; until: number } | undefined;
  #keepAlive: ReturnType<typeof setInterval> | undefined;
  #leaving: ReturnType<typeof setTimeout> | undefined;

  constructor(_state: unknown, env: object) {
    this.#client = new ResonateClient(placeOf(readConfig(env)));
  }

  /**
   * A stream of server-sent events: first `{"address"}`, which the promises are to be listened to at, then each message of
   * the Resonate server that is about them. 429 and 503 where there are too many, 503 without a connection.
   */
  async fetch(request: Request): Promise<Response> {
    const wait = (await request.json()) as Wait;
    if (this.#countOf(wait.caller) >= MAX_OF_ONE) return refuse(429, "this caller waits too often at once");
    if (this.#waiters.size >= MAX_WAITING) return refuse(503, "too many wait at once");
    clearTimeout(this.#leaving);
    let channel: Channel;
    try {
      channel = await this.#connect();
    } catch (error) {
      if (!(error instanceof ResonateUnavailable)) throw error;
      return refuse(503, error.message);
    } finally {
      this.#rest();
    }
    return this.#join(wait, channel);
  }

  #join(wait: Wait, { address }: Channel): Response {
    let waiter: Waiter;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          waiter = { ...wait, controller };
          this.#waiters.add(waiter);
          for (const id of wait.ids) this.#byId.set(id, (this.#byId.get(id) ?? new Set()).add(waiter));
          this.#keepAlive ??= setInterval(() => this.#tell(this.#waiters, ":\n\n"), KEEP_ALIVE);
          clearTimeout(this.#leaving);
          controller.enqueue(encoder.encode(event({ address })));
        },
        cancel: () => this.#leave(waiter),
      },
      { highWaterMark: MAX_BEHIND, size: (chunk) => chunk?.byteLength ?? 0 },
    );
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }

  /** The connection that there is, or a new one. All who wait share it: an object's requests may. */
  async #connect(): Promise<Channel> {
    const now = Date.now();
    if (this.#failed && now < this.#failed.until) throw this.#failed.error;
    this.#connection ??= this.#open();
    const { channel } = this.#connection;
    return channel;
  }

  #open(): Connection {
    const end = new AbortController();
    const channel = this.#client.open({
      group: "edge",
      id: crypto.randomUUID(),
      signal: end.signal,
      onMessage: (message) => this.#hear(message),
    });
    const connection = { channel, end };
    channel.then(
      ({ closed }) => closed.then(() => this.#lost(connection)),
      (error) => {
        this.#failed = { error, until: Date.now() + PAUSE };
        this.#lost(connection);
      },
    );
    return connection;
  }

  /** The connection is no more: what it would have told is to be looked at by whoever waits. */
  #lost(connection: Connection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    for (const waiter of [...this.#waiters]) this.#end(waiter);
  }

  #hear(message: Message): void {
    if (message.kind !== "unblock") return;
    const { promise } = message;
    const waiters = this.#byId.get(rootOf(promise.id));
    if (!waiters) return;
    const whole = event(promise);
    this.#tell(waiters, whole.length <= MAX_MESSAGE ? whole : event({ id: promise.id }));
  }

  #tell(waiters: Iterable<Waiter>, text: string): void {
    const chunk = encoder.encode(text);
    for (const waiter of [...waiters]) {
      // One that does not read is told nothing more; it finds out by itself what it has missed.
      if ((waiter.controller.desiredSize ?? 0) <= 0) this.#end(waiter);
      else waiter.controller.enqueue(chunk);
    }
  }

  #end(waiter: Waiter): void {
    this.#leave(waiter);
    try {
      waiter.controller.close();
    } catch {
      // It was closed by its reader.
    }
  }

  #leave(waiter: Waiter): void {
    this.#waiters.delete(waiter);
    for (const id of waiter.ids) {
      const others = this.#byId.get(id);
      others?.delete(waiter);
      if (others?.size === 0) this.#byId.delete(id);
    }
    this.#rest();
  }

  /** Closes the connection when nobody has come for a while: nobody pays for one that nobody needs. */
  #rest(): void {
    if (this.#waiters.size > 0) return;
    clearInterval(this.#keepAlive);
    this.#keepAlive = undefined;
    clearTimeout(this.#leaving);
    this.#leaving = setTimeout(() => {
      if (this.#waiters.size > 0) return;
      this.#connection?.end.abort();
      this.#connection = undefined;
    }, LINGER);
  }

  #countOf(caller: string): number {
    // Where callers are not told apart there is one, who is not to be kept from waiting.
    return caller === "" ? 0 : [...this.#waiters].filter((waiter) => waiter.caller === caller).length;
  }
}

const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;

const refuse = (status: number, reason: string) => Response.json({ reason }, { status });
