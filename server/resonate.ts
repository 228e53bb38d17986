/** The embedded Resonate server without its HTTP: requests go in, answers and messages come out once they are on disk. */
import type { Request } from "@resonatehq/sdk";
import { Engine } from "./engine/engine.ts";
import { Mailbox } from "./engine/mailbox.ts";
import type { Change, Transition } from "./engine/state-machine.ts";
import { type Store, TooLarge } from "./engine/store.ts";
import { Connections, type PollConnection } from "./wire/poll-connections.ts";

/** How many requests share one commit at most, so that a flood of them does not hold up the rest. */
const BATCH_SIZE = 250;

/** How soon one and the same failure is logged again, in milliseconds. */
const SAID_AGAIN = 10_000;

export type Response = Transition["response"];

export interface ServerLog {
  error(fields: object, message: string): void;
}

export interface Host {
  log: ServerLog;
  /** Calls `work` when what has come in meanwhile is there as well. */
  soon(work: () => void): void;
  /** Called after every commit that changed something: something may be due earlier, or later, than before. */
  onCommit?(): void;
  /** Told of a worker group for which tasks wait and nobody is connected. */
  onUnheard?(group: string): void;
}

interface Waiting {
  request: Request;
  resolve: (response: Response) => void;
}

/** What is due is handled when the host calls {@link tick}: a process by a timer, an object by its alarm. */
export class Resonate {
  readonly #connections = new Connections();
  readonly #mailbox: Mailbox;
  readonly #store: Store;
  readonly #engine: Engine;
  readonly #host: Host;
  readonly #queue: Waiting[] = [];
  #unheard = new Set<string>();
  #told = { words: "", at: 0 };
  #closed = false;

  /** Reads nothing: what waits is looked up for whoever connects. */
  constructor(store: Store, host: Host) {
    this.#store = store;
    this.#engine = new Engine(store, (group) => this.#isHeard(group));
    this.#mailbox = new Mailbox(this.#connections, store, (group) => host.onUnheard?.(group));
    this.#host = host;
  }

  /** Whether somebody of a group is there, or comes for what waits. */
  #isHeard(group: string): boolean {
    if (!this.#connections.isHeard(group)) this.#host.onUnheard?.(group);
    return this.#connections.isHeard(group);
  }

  /**
   * Answers a request when what it changed is on disk. Requests that arrive together share one commit, which is what
   * makes waiting for the disk affordable. Never rejects: what goes wrong is a response with status 500.
   */
  submit(request: Request): Promise<Response> {
    return new Promise((resolve) => {
      if (this.#closed) return resolve(failed(request.kind));
      if (this.#queue.length === 0) this.#host.soon(() => this.#answer());
      this.#queue.push({ request, resolve });
    });
  }

  #answer(): void {
    const batch = this.#queue.splice(0, BATCH_SIZE);
    if (batch.length === 0) return;
    if (this.#queue.length > 0) this.#host.soon(() => this.#answer());
    const responses = this.commit(() => {
      const outcomes = batch.map(({ request }) => this.#outcome(request));
      return { result: outcomes.map(({ response }) => response), changes: outcomes.flatMap(({ changes }) => changes) };
    });
    for (const [i, { request, resolve }] of batch.entries()) resolve(responses?.[i] ?? failed(request.kind));
  }

  #outcome(request: Request): Transition {
    try {
      return this.#store.attempt(() => this.#engine.apply(Date.now(), request));
    } catch (error) {
      if (error instanceof TooLarge)
        return { response: { kind: request.kind, head: { status: 413 }, data: error.message }, changes: [] };
      this.#host.log.error({ err: error, kind: request.kind }, "request failed");
      return { response: failed(request.kind), changes: [] };
    }
  }

  /**
   * Handles a piece of what is due: whether there was something, so that there may be more; undefined when nothing could
   * be written.
   */
  tick(): boolean | undefined {
    return this.commit(() => {
      const { changes, rested } = this.#engine.tick(Date.now());
      return { result: changes.length + rested > 0, changes };
    });
  }

  /** When something is due next, in milliseconds since the epoch; undefined when nothing is. */
  get due(): number | undefined {
    return this.#store.due();
  }

  /** Commits what `work` does, then delivers the messages; undefined, and nothing changed, when that fails. */
  protected commit<T>(work: () => { result: T; changes: Change[] }): T | undefined {
    try {
      const { result, changes } = this.#store.transaction(work);
      const late = this.#mailbox.deliver(changes);
      if (late.length > 0) this.#wake(late);
      if (changes.length > 0) this.#host.onCommit?.();
      return result;
    } catch (error) {
      this.#tell(error);
      return undefined;
    }
  }

  /** Why nothing was written: while a disk is full that befalls every request, and is not said of each. */
  #tell(error: unknown): void {
    const words = error instanceof Error ? error.message : String(error);
    const now = Date.now();
    if (words === this.#told.words && now < this.#told.at + SAID_AGAIN) return;
    this.#told = { words, at: now };
    this.#host.log.error({ err: error }, "nothing was written");
  }

  /**
   * Opens a connection for messages; undefined when there are too many. It takes the place of the one that its client had
   * under this id before, which may be dead without anybody having said so: what that had got and not claimed goes on.
   */
  connect(group: string, id: string, { isRunner = false } = {}): PollConnection | undefined {
    const before = this.#connections.named(group, id);
    const connection = this.#connections.open(group, id, isRunner);
    if (connection && before) this.disconnect(before);
    if (connection) this.#mailbox.connected(connection);
    return connection;
  }

  /** The next messages for `connection`, when there are any; undefined when it is closed. */
  next(connection: PollConnection): Promise<string[] | undefined> {
    const late = connection.waiting.length === 0 ? this.#mailbox.refill(connection) : [];
    if (late.length > 0) this.#wake(late);
    return this.#connections.next(connection);
  }

  /** Whether a task waits for a group of which nobody is connected. */
  isWaiting(group: string): boolean {
    return !this.#connections.isHeard(group) && this.#store.offers(group, { timer: 0, id: "" }, 1).length > 0;
  }

  /** What was at rest has been dispatched. */
  #wake(tasks: readonly string[]): void {
    const now = Date.now();
    this.commit(() => {
      for (const id of tasks) this.#store.wake(id, now);
      return { result: undefined, changes: [] };
    });
    this.#host.onCommit?.();
  }

  /** There is no code for a task at a connection, the runner's: it is left alone for a while, unless somebody else comes. */
  leaveAlone(task: string, connection: PollConnection): void {
    this.#mailbox.isOfNoUse(task, connection);
    this.commit(() => {
      this.#store.leaveAlone(task, Date.now());
      return { result: undefined, changes: [] };
    });
  }

  disconnect(connection: PollConnection): void {
    this.#connections.close(connection);
    this.#mailbox.disconnected(connection);
  }

  /**
   * Listeners are stored, so that a client that reconnects after a restart is told. But a client never takes a listener
   * back: one whose address has had no connection for a whole interval is dropped, or a promise that many have waited
   * for in vain would collect them for as long as it is pending. Nothing is lost, as there is nobody to tell. A host calls
   * this at such intervals.
   */
  dropUnheardListeners(): void {
    const unheard = new Set<string>();
    this.commit(() => {
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
    while (this.#queue.length > 0) this.#answer();
    this.#connections.closeAll();
    this.#store.close();
  }
}

function failed(kind: string): Response {
  return { kind, head: { status: 500 }, data: "Internal error: the request was not carried out" };
}
