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

/** How much one may not have been told yet, in characters, before it is given up. */
const MAX_BEHIND = 2_000_000;

/** How long a question is open before it is answered with no news, and how long one may ask none, in milliseconds. */
export const OPEN = 60_000;
const AWAY = 5_000;

/** How often is looked for those who have gone without a word, in milliseconds. */
const SWEEP = 2_500;

/** How long the connection is kept when nobody waits any more, and how long a failed one is not tried again, in milliseconds. */
const LINGER = 1_000;
const PAUSE = 500;

/** What a wait begins with. */
export interface Wait {
  /** The promises, by id. What is told of their children is told, too. */
  ids: readonly string[];
  /** Who waits: the caller's key. */
  caller: string;
}

/** What goes on with a wait: who waits asks for news, again and again. */
export interface Ask {
  wait: string;
}

interface Waiter extends Wait {
  wait: string;
  /** What it has not been told yet, as JSON, and its length. */
  news: string[];
  behind: number;
  /** Answers its question; undefined while none is open. */
  answer: (() => void) | undefined;
  /** When its question was asked, or the last one answered. */
  since: number;
}

interface Connection {
  channel: Promise<Channel>;
  end: AbortController;
}

/**
 * The one place of a deployment that connections for settlements are opened from: a Durable Object. Whoever waits, in
 * whatever isolate, is told by it what of his has settled. So the number of connections to the Resonate server does not
 * depend on how many callers wait, and workers have room for theirs. A Worker's entry exports it beside its default export,
 * and `wrangler.toml` binds it as `LISTENER`.
 *
 * It keeps nothing: when it ends, its waits do, and whoever waits looks at his promises and comes back. It is asked by
 * the edge alone, which knows whose promises are whose.
 *
 * @example
 * const entry = { Listener, default: createEdge({ name: "my-server", version: "1.0.0", tools: [waitForSite] }) };
 */
export class Listener {
  readonly #client: ResonateClient;
  readonly #waiters = new Map<string, Waiter>();
  /** Who waits for a promise, by its id. */
  readonly #byId = new Map<string, Set<Waiter>>();
  #connection: Connection | undefined;
  #failed: { error: ResonateUnavailable; until: number } | undefined;
  #sweeping: ReturnType<typeof setInterval> | undefined;
  #leaving: ReturnType<typeof setTimeout> | undefined;

  constructor(_state: unknown, env: object) {
    this.#client = new ResonateClient(placeOf(readConfig(env)));
  }

  /**
   * To a {@link Wait} the answer is `{"wait", "address"}`: what to ask for news with, and what the promises are to be
   * listened to at; 429 and 503 where there are too many, 503 without a connection. To an {@link Ask} it is a list of what
   * the Resonate server has said of them since, once there is any or the time is up; 410 when the wait is no more.
   *
   * A question that is open takes less memory than a stream, at both ends.
   */
  async fetch(request: Request): Promise<Response> {
    const asked = (await request.json()) as Wait | Ask;
    if ("wait" in asked) return this.#inform(asked.wait, request.signal);
    if (this.#countOf(asked.caller) >= MAX_OF_ONE) return refuse(429, "this caller waits too often at once");
    if (this.#waiters.size >= MAX_WAITING) return refuse(503, "too many wait at once");
    clearTimeout(this.#leaving);
    try {
      const { address } = await this.#connect();
      if (request.signal.aborted) return refuse(410, "nobody waits any more");
      return Response.json({ wait: this.#join(asked), address });
    } catch (error) {
      if (!(error instanceof ResonateUnavailable)) throw error;
      return refuse(503, error.message);
    } finally {
      this.#rest();
    }
  }

  #join({ ids, caller }: Wait): string {
    // Not a number: that of another wait, from before this object was started anew, must not be it.
    const wait = crypto.randomUUID();
    const waiter = { ids, caller, wait, news: [], behind: 0, answer: undefined, since: Date.now() };
    this.#waiters.set(wait, waiter);
    for (const id of ids) this.#byId.set(id, (this.#byId.get(id) ?? new Set()).add(waiter));
    this.#sweeping ??= setInterval(() => this.#sweep(), SWEEP);
    return wait;
  }

  async #inform(wait: string, signal: AbortSignal): Promise<Response> {
    const waiter = this.#waiters.get(wait);
    if (!waiter) return refuse(410, "the wait is over");
    waiter.since = Date.now();
    if (waiter.news.length === 0) {
      await new Promise<void>((resolve) => {
        waiter.answer = resolve;
        // Whoever asked has gone.
        signal.addEventListener("abort", () => waiter.answer === resolve && this.#leave(waiter));
      });
      if (this.#waiters.get(wait) !== waiter) return refuse(410, "the wait is over");
      waiter.answer = undefined;
      waiter.since = Date.now();
    }
    const said = `[${waiter.news}]`;
    waiter.news = [];
    waiter.behind = 0;
    return new Response(said);
  }

  #sweep(): void {
    const now = Date.now();
    for (const waiter of this.#waiters.values()) {
      if (waiter.answer && now >= waiter.since + OPEN) waiter.answer();
      else if (!waiter.answer && now >= waiter.since + AWAY) this.#leave(waiter);
    }
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
    for (const waiter of [...this.#waiters.values()]) this.#leave(waiter);
  }

  #hear(message: Message): void {
    if (message.kind !== "unblock") return;
    const { promise } = message;
    const waiters = this.#byId.get(rootOf(promise.id));
    if (!waiters) return;
    const whole = JSON.stringify(promise);
    const said = whole.length <= MAX_MESSAGE ? whole : JSON.stringify({ id: promise.id });
    for (const waiter of [...waiters]) {
      waiter.behind += said.length;
      // One that does not ask is told nothing more; it finds out by itself what it has missed.
      if (waiter.behind > MAX_BEHIND) this.#leave(waiter);
      else {
        waiter.news.push(said);
        waiter.answer?.();
      }
    }
  }

  #leave(waiter: Waiter): void {
    this.#waiters.delete(waiter.wait);
    for (const id of waiter.ids) {
      const others = this.#byId.get(id);
      others?.delete(waiter);
      if (others?.size === 0) this.#byId.delete(id);
    }
    waiter.answer?.();
    this.#rest();
  }

  /** Closes the connection when nobody has come for a while: nobody pays for one that nobody needs. */
  #rest(): void {
    if (this.#waiters.size > 0) return;
    clearInterval(this.#sweeping);
    this.#sweeping = undefined;
    clearTimeout(this.#leaving);
    this.#leaving = setTimeout(() => {
      if (this.#waiters.size > 0) return;
      this.#connection?.end.abort();
      this.#connection = undefined;
    }, LINGER);
  }

  #countOf(caller: string): number {
    // Where callers are not told apart there is one, who is not to be kept from waiting.
    return caller === "" ? 0 : [...this.#waiters.values()].filter((waiter) => waiter.caller === caller).length;
  }
}

const refuse = (status: number, reason: string) => Response.json({ reason }, { status });
