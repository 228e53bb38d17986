import { type CallerRecord, startedJob } from "../../core/jobs/caller-record.ts";
import { ResonateClient } from "../../core/store/client.ts";
import type { Channel } from "../../core/store/connections.ts";
import { endpointOf } from "../../core/store/endpoint.ts";
import { ResonateUnavailable } from "../../core/store/failures.ts";
import { isRoot, rootOf } from "../../core/store/ids.ts";
import type { Message, PromiseRecord } from "../../core/store/protocol.ts";
import { readConfig } from "../app/config.ts";
import { type CallerNamespace, createRecords } from "../caller/callers.ts";
import type { Joined, Wait } from "./feed.ts";

/** How many wait at once, of one caller and of all; past that they look with pauses. */
const MAX_OF_ONE = 500;
const MAX_WAITING = 5_000;

/** The largest message that is passed on, in characters: one that is larger says what has settled, and is read once more. */
const MAX_MESSAGE = 65_536;

/** How much one may have been told without having taken it, in characters, before it is given up. */
const MAX_BEHIND = 2_000_000;

/** How often everybody is called who waits, in milliseconds: one who has gone without a word is found out by it. */
const CALL = 15_000;

/** How long the connection is kept when nobody waits any more, and how long a failed one is not tried again, in milliseconds. */
const LINGER = 1_000;
const PAUSE = 500;

/** That as it arrives here. */
interface Told extends Disposable {
  (said: string): Promise<unknown>;
  dup(): Told;
}

interface Waiter extends Wait {
  tell: Told;
  /** How much of what he was told he has not taken yet, in characters. */
  behind: number;
}

interface Connection {
  channel: Promise<Channel>;
  end: AbortController;
}

interface Runtime {
  DurableObject: new (state: unknown, env: object) => object;
  RpcTarget: new () => object;
}

/** What is called from elsewhere extends a class of the runtime's. Node, which has none, can still read what is exported here. */
const { DurableObject, RpcTarget }: Runtime = await import("cloudflare:workers" as string).catch(() => ({
  DurableObject: Object,
  RpcTarget: Object,
}));

/** Ends a wait when whoever has it disposes of it, or is no more. */
class Held extends RpcTarget implements Disposable {
  readonly #leave: () => void;

  constructor(leave: () => void) {
    super();
    this.#leave = leave;
  }

  [Symbol.dispose](): void {
    this.#leave();
  }
}

/**
 * The one place of a deployment that connections for settlements are opened from: a Durable Object. Whoever waits, in
 * whatever isolate, is told by it what of his has settled. So the number of connections to the Resonate server does not
 * depend on how many callers wait, and workers have room for theirs. A Worker's entry exports it beside its default export,
 * and `wrangler.toml` binds it as `LISTENER`.
 *
 * It keeps nothing: when it ends, its waits do, and whoever waits looks at his promises and comes back. It also tells the
 * records of the callers who wait that a job has ended. It is asked by the edge alone, which knows whose promises are whose.
 *
 * @example
 * const entry = { Listener, default: createEdge({ name: "my-server", version: "1.0.0", tools: [waitForSite] }) };
 */
export class Listener extends DurableObject {
  readonly #client: ResonateClient;
  readonly #recordOf: ((key: string) => CallerRecord) | undefined;
  readonly #waiters = new Set<Waiter>();
  /** Who waits for a promise, by its id. */
  readonly #byId = new Map<string, Set<Waiter>>();
  #connection: Connection | undefined;
  #failed: { error: ResonateUnavailable; until: number } | undefined;
  #calling: ReturnType<typeof setInterval> | undefined;
  #leaving: ReturnType<typeof setTimeout> | undefined;

  constructor(state: object, env: object) {
    super(state, env);
    const config = readConfig(env);
    this.#client = new ResonateClient(endpointOf(config));
    this.#recordOf = config.CALLER && createRecords(config.CALLER as CallerNamespace, config.RESONATE_NAMESPACE);
  }

  /** Comes once where 1c007cb had set it. */
  async alarm(): Promise<void> {}

  /**
   * Tells of promises, until its answer is disposed of: each message of the Resonate server that is about them. It is called
   * back because that takes less memory than a stream, at both ends. 429 and 503 where there are too many, 503 without a
   * connection.
   */
  async listen(wait: Wait, tell: Told): Promise<Joined> {
    if (this.#countOf(wait.caller) >= MAX_OF_ONE) return { status: 429 };
    if (this.#waiters.size >= MAX_WAITING) return { status: 503 };
    clearTimeout(this.#leaving);
    try {
      const { address } = await this.#connect();
      return { address, held: this.#join({ ...wait, tell: tell.dup(), behind: 0 }) };
    } catch (error) {
      if (!(error instanceof ResonateUnavailable)) throw error;
      return { status: 503 };
    } finally {
      this.#rest();
    }
  }

  #join(waiter: Waiter): Held {
    this.#waiters.add(waiter);
    for (const id of waiter.ids) this.#byId.set(id, (this.#byId.get(id) ?? new Set()).add(waiter));
    this.#calling ??= setInterval(() => this.#tell(this.#waiters, ""), CALL);
    return new Held(() => this.#leave(waiter));
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
    for (const waiter of [...this.#waiters]) this.#leave(waiter);
  }

  #hear(message: Message): void {
    if (message.kind !== "unblock") return;
    const { promise } = message;
    const waiters = this.#byId.get(rootOf(promise.id));
    if (!waiters) return;
    if (isRoot(promise.id)) this.#note(promise, waiters);
    const whole = JSON.stringify(promise);
    this.#tell(waiters, whole.length <= MAX_MESSAGE ? whole : JSON.stringify({ id: promise.id }));
  }

  /** Tells the records of the callers who wait; one that cannot be told looks by itself. */
  #note(promise: PromiseRecord, waiters: Iterable<Waiter>): void {
    for (const key of new Set(Array.from(waiters, ({ caller }) => caller)))
      this.#recordOf?.(key)
        .note([startedJob(promise, key)], true)
        .catch(() => {});
  }

  #tell(waiters: Iterable<Waiter>, said: string): void {
    for (const waiter of [...waiters]) {
      waiter.behind += said.length;
      // One that does not take it is told nothing more; it finds out by itself what it has missed.
      if (waiter.behind > MAX_BEHIND) this.#leave(waiter);
      else
        waiter.tell(said).then(
          () => {
            waiter.behind -= said.length;
          },
          () => this.#leave(waiter),
        );
    }
  }

  #leave(waiter: Waiter): void {
    if (!this.#waiters.delete(waiter)) return;
    waiter.tell[Symbol.dispose]();
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
    clearInterval(this.#calling);
    this.#calling = undefined;
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
