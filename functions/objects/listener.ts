import { type CallerRecord, startedJob } from "../../core/jobs/index.ts";
import {
  type Channel,
  endpointOf,
  isRoot,
  type Message,
  type PromiseRecord,
  ResonateClient,
  ResonateUnavailable,
  rootOf,
} from "../../core/resonate/index.ts";
import { readConfig } from "../config.ts";
import { callersOf } from "./callers.ts";
import { DurableObject, RpcTarget } from "./durable-object.ts";
import type { Joined, OpenWait, Wait } from "./feed.ts";

/** How many waits are served at once, of one caller and of all. Further waits poll. */
const MAX_WAITS_OF_ONE = 500;
const MAX_WAITS = 5_000;

/** The largest message that is passed on, in characters. A larger one names the promise, which the waiter reads. */
const MAX_MESSAGE_CHARACTERS = 65_536;

/** How many characters a waiter may leave unread before its wait ends. */
const MAX_UNREAD_CHARACTERS = 2_000_000;

/** How often each waiter is called, in milliseconds: a call to one that is gone fails. */
const CHECK_INTERVAL_MS = 15_000;

/** How long the connection is kept without waiters, and the pause after a failed one, in milliseconds. */
const IDLE_CONNECTION_MS = 1_000;
const RECONNECT_PAUSE_MS = 500;

/** How messages are sent to a waiter: its callback as the runtime passes it on. */
interface RemoteSend extends Disposable {
  (message: string): Promise<unknown>;
  dup(): RemoteSend;
}

interface Waiter {
  caller: string;
  /** The promises that have not settled. */
  ids: Set<string>;
  send: RemoteSend;
  /** How many characters of its messages it has not read yet. */
  unreadCharacters: number;
}

interface Connection {
  channel: Promise<Channel>;
  end: AbortController;
}

/** Ends a wait when its owner disposes of it or is gone. */
class JoinedWait extends RpcTarget implements Disposable, OpenWait {
  readonly #leave: () => void;
  readonly #add: (ids: readonly string[]) => void;

  constructor(leave: () => void, add: (ids: readonly string[]) => void) {
    super();
    this.#leave = leave;
    this.#add = add;
  }

  add(ids: readonly string[]): void {
    this.#add(ids);
  }

  [Symbol.dispose](): void {
    this.#leave();
  }
}

/** A listener starts no jobs. */
const NO_LIMITS = { jobs: 0, bytes: 0 };

/**
 * A Durable Object that opens a deployment's connections for settlements, and passes settlements on to the waits of all
 * isolates. The number of connections to the Resonate server does not depend on the number of waiting callers, so that
 * workers have room for theirs. A Worker's entry exports it beside its default export, and `wrangler.toml` binds it as
 * `LISTENER`.
 *
 * It keeps nothing: its waits end with it, and their owners read their promises and wait again. It also reports the end of a
 * job to the objects of the callers who wait for it. The edge alone calls it, and checks which promises belong to whom.
 *
 * @example
 * const entry = { Listener, default: createEdge({ name: "my-server", version: "1.0.0", tools: [waitForSite] }) };
 */
export class Listener extends DurableObject {
  readonly #client: ResonateClient;
  readonly #recordOf: ((key: string) => CallerRecord) | undefined;
  readonly #waiters = new Set<Waiter>();
  readonly #byId = new Map<string, Set<Waiter>>();
  #connection: Connection | undefined;
  /** Until when no connection is tried after one has failed, in milliseconds since the epoch. */
  #failedUntil = 0;
  #checking: ReturnType<typeof setInterval> | undefined;
  #closing: ReturnType<typeof setTimeout> | undefined;

  constructor(state: object, env: object) {
    super(state, env);
    const config = readConfig(env);
    this.#client = new ResonateClient(endpointOf(config));
    this.#recordOf = callersOf(config)?.records(NO_LIMITS).of;
  }

  /**
   * Passes on each message of the Resonate server about these promises until its answer is disposed of. A callback takes
   * less memory than a stream, at both ends. Answers 429 or 503 if there are too many waits, 503 without a connection.
   */
  async listen(wait: Wait, send: RemoteSend): Promise<Joined> {
    clearTimeout(this.#closing);
    try {
      if (Date.now() < this.#failedUntil) return { status: 503 };
      // All waiters share the connection, as requests of one object may.
      this.#connection ??= this.#open();
      const { address } = await this.#connection.channel;
      if (this.#countOf(wait.caller) >= MAX_WAITS_OF_ONE) return { status: 429 };
      if (this.#waiters.size >= MAX_WAITS) return { status: 503 };
      return {
        address,
        wait: this.#join({ caller: wait.caller, ids: new Set(wait.ids), send: send.dup(), unreadCharacters: 0 }),
      };
    } catch (error) {
      if (!(error instanceof ResonateUnavailable)) throw error;
      return { status: 503 };
    } finally {
      this.#rest();
    }
  }

  #join(waiter: Waiter): JoinedWait {
    this.#waiters.add(waiter);
    this.#add(waiter, waiter.ids);
    this.#checking ??= setInterval(() => this.#send(this.#waiters, ""), CHECK_INTERVAL_MS);
    return new JoinedWait(
      () => this.#leave(waiter),
      (ids) => {
        if (this.#waiters.has(waiter)) this.#add(waiter, ids);
      },
    );
  }

  #add(waiter: Waiter, ids: Iterable<string>): void {
    for (const id of ids) {
      waiter.ids.add(id);
      this.#byId.set(id, (this.#byId.get(id) ?? new Set()).add(waiter));
    }
  }

  #open(): Connection {
    const end = new AbortController();
    const channel = this.#client.connections.open({
      group: "edge",
      id: crypto.randomUUID(),
      signal: end.signal,
      onMessage: (message) => this.#receive(message),
    });
    const connection = { channel, end };
    channel.then(
      ({ closed }) => closed.then(() => this.#lost(connection)),
      () => {
        this.#failedUntil = Date.now() + RECONNECT_PAUSE_MS;
        this.#lost(connection);
      },
    );
    return connection;
  }

  /** Ends all waits with their connection: their owners read what they may have missed. */
  #lost(connection: Connection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    for (const waiter of [...this.#waiters]) this.#leave(waiter);
  }

  #receive(message: Message): void {
    if (message.kind !== "unblock") return;
    const { promise } = message;
    const waiters = this.#byId.get(rootOf(promise.id));
    if (!waiters) return;
    if (isRoot(promise.id)) this.#note(promise, waiters);
    const whole = JSON.stringify(promise);
    this.#send(waiters, whole.length <= MAX_MESSAGE_CHARACTERS ? whole : JSON.stringify({ id: promise.id }));
    if (!isRoot(promise.id)) return;
    this.#byId.delete(promise.id);
    for (const waiter of waiters) waiter.ids.delete(promise.id);
  }

  /** Reports the end of a job to the objects of the callers who wait. An object that misses it finds it at a later look. */
  #note(promise: PromiseRecord, waiters: Iterable<Waiter>): void {
    for (const key of new Set(Array.from(waiters, ({ caller }) => caller)))
      this.#recordOf?.(key)
        .note([startedJob(promise, key)], true)
        .catch(() => {});
  }

  #send(waiters: Iterable<Waiter>, message: string): void {
    for (const waiter of [...waiters]) {
      waiter.unreadCharacters += message.length;
      // A waiter that does not read gets nothing more, and reads the promises itself.
      if (waiter.unreadCharacters > MAX_UNREAD_CHARACTERS) this.#leave(waiter);
      else
        waiter.send(message).then(
          () => {
            waiter.unreadCharacters -= message.length;
          },
          () => this.#leave(waiter),
        );
    }
  }

  #leave(waiter: Waiter): void {
    if (!this.#waiters.delete(waiter)) return;
    waiter.send[Symbol.dispose]();
    for (const id of waiter.ids) {
      const others = this.#byId.get(id);
      others?.delete(waiter);
      if (others?.size === 0) this.#byId.delete(id);
    }
    this.#rest();
  }

  /** Closes the connection after a while without waiters: an open one is billed. */
  #rest(): void {
    if (this.#waiters.size > 0) return;
    clearInterval(this.#checking);
    this.#checking = undefined;
    clearTimeout(this.#closing);
    this.#closing = setTimeout(() => {
      if (this.#waiters.size > 0) return;
      this.#connection?.end.abort();
      this.#connection = undefined;
    }, IDLE_CONNECTION_MS);
  }

  #countOf(caller: string): number {
    // Without authentication all callers count as one, and have no limit of waits.
    return caller === "" ? 0 : [...this.#waiters].filter((waiter) => waiter.caller === caller).length;
  }
}
