/** The embedded Resonate server without its HTTP: requests go in, answers and messages come out once they are on disk. */
import type { Request } from "@resonatehq/sdk";
import type { Logger } from "pino";
import { Connections, type PollConnection } from "./connections.ts";
import { Engine } from "./engine.ts";
import { Mailbox } from "./mailbox.ts";
import { Retention } from "./retention.ts";
import type { Change, Transition } from "./state-machine.ts";
import type { Store } from "./store.ts";

/** How often, in milliseconds, it is checked whether something is due: the most a timer is late while little happens. */
const TICK_INTERVAL = 50;
/** How long, in milliseconds, to leave a disk alone that could not be written to. */
const FAILURE_PAUSE = 1_000;
/** How often, in milliseconds, listeners are checked for whether their address is still connected. */
const LISTENER_INTERVAL = 120_000;
/** How many requests share one commit at most, so that a flood of them does not hold up the rest. */
const BATCH_SIZE = 250;

export type Response = Transition["response"];

interface Waiting {
  request: Request;
  resolve: (response: Response) => void;
}

export class Resonate {
  readonly #connections = new Connections();
  readonly #mailbox = new Mailbox(this.#connections);
  readonly #store: Store;
  readonly #engine: Engine;
  readonly #log: Logger;
  readonly #queue: Waiting[] = [];
  readonly #sweeper: NodeJS.Timeout;
  readonly #retention: Retention | undefined;
  #ticker: NodeJS.Timeout | undefined;
  #unheard = new Set<string>();
  #closed = false;

  /** `keep`: for how long a job that has ended is kept, in milliseconds; for ever when left out. */
  constructor(store: Store, log: Logger, { keep }: { keep?: number | undefined } = {}) {
    this.#store = store;
    this.#engine = new Engine(store);
    this.#log = log;
    for (const dispatch of store.dispatches()) this.#mailbox.dispatch(dispatch);
    this.#tick();
    this.#sweeper = setInterval(() => this.#dropUnheardListeners(), LISTENER_INTERVAL);
    const commit = (work: () => void) => this.#commit(() => ({ result: work() ?? true, changes: [] })) !== undefined;
    this.#retention = keep === undefined ? undefined : new Retention(store, keep, commit);
  }

  /**
   * Answers a request when what it changed is on disk. Requests that arrive together share one commit, which is what
   * makes waiting for the disk affordable. Never rejects: what goes wrong is a response with status 500.
   */
  submit(request: Request): Promise<Response> {
    return new Promise((resolve) => {
      if (this.#closed) return resolve(failed(request.kind));
      if (this.#queue.length === 0) setImmediate(() => this.#answer());
      this.#queue.push({ request, resolve });
    });
  }

  #answer(): void {
    const batch = this.#queue.splice(0, BATCH_SIZE);
    if (batch.length === 0) return;
    if (this.#queue.length > 0) setImmediate(() => this.#answer());
    const responses = this.#commit(() => {
      const outcomes = batch.map(({ request }) => this.#outcome(request));
      return { result: outcomes.map(({ response }) => response), changes: outcomes.flatMap(({ changes }) => changes) };
    });
    for (const [i, { request, resolve }] of batch.entries()) resolve(responses?.[i] ?? failed(request.kind));
  }

  #outcome(request: Request): Transition {
    try {
      return this.#store.attempt(() => this.#engine.apply(Date.now(), request));
    } catch (error) {
      this.#log.error({ err: error, kind: request.kind }, "request failed");
      return { response: failed(request.kind), changes: [] };
    }
  }

  /** Handles what is due, in pieces, with time for requests in between. */
  #tick(): void {
    const changes = this.#commit(() => {
      const { changes } = this.#engine.tick(Date.now());
      return { result: changes.length, changes };
    });
    const pause = changes === undefined ? FAILURE_PAUSE : changes > 0 ? 0 : TICK_INTERVAL;
    this.#ticker = setTimeout(() => this.#tick(), pause);
  }

  /** Commits what `work` does, then delivers the messages; undefined, and nothing changed, when that fails. */
  #commit<T>(work: () => { result: T; changes: Change[] }): T | undefined {
    try {
      const { result, changes } = this.#store.transaction(work);
      this.#mailbox.deliver(changes);
      return result;
    } catch (error) {
      this.#log.error({ err: error }, "nothing was written");
      return undefined;
    }
  }

  /**
   * Opens a connection for messages; undefined when there are too many. It takes the place of the one that its client had
   * under this id before, which may be dead without anybody having said so: what that had got and not claimed goes on.
   */
  connect(group: string, id: string): PollConnection | undefined {
    const before = this.#connections.named(group, id);
    const connection = this.#connections.open(group, id);
    if (connection && before) this.disconnect(before);
    return connection;
  }

  /** The next messages for `connection`, when there are any; undefined when it is closed. */
  next(connection: PollConnection): Promise<string[] | undefined> {
    if (connection.waiting.length === 0) this.#mailbox.refill(connection);
    return this.#connections.next(connection);
  }

  disconnect(connection: PollConnection): void {
    this.#connections.close(connection);
    this.#mailbox.disconnected(connection);
  }

  /**
   * Listeners are stored, so that a client that reconnects after a restart is told. But a client never takes a listener
   * back: one whose address has had no connection for a whole interval is dropped, or a promise that many have waited
   * for in vain would collect them for as long as it is pending. Nothing is lost, as there is nobody to tell.
   */
  #dropUnheardListeners(): void {
    const unheard = new Set<string>();
    this.#commit(() => {
      for (const address of this.#store.listenerAddresses()) {
        if (this.#connections.find(address)) continue;
        if (this.#unheard.has(address)) this.#store.deleteListeners(address);
        else unheard.add(address);
      }
      return { result: undefined, changes: [] };
    });
    this.#unheard = unheard;
  }

  /** Answers what has been asked, ends all connections and closes the store. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#ticker);
    clearInterval(this.#sweeper);
    this.#retention?.stop();
    while (this.#queue.length > 0) this.#answer();
    this.#connections.closeAll();
    this.#store.close();
  }
}

function failed(kind: string): Response {
  return { kind, head: { status: 500 }, data: "Internal error: the request was not carried out" };
}
