/**
 * The embedded Resonate server without its transport: it takes requests, and sends answers and messages once the changes are
 * on disk. `wire/` reads requests and keeps connections, `engine/` answers and stores, `node/` and `object/` host it.
 */
import { Dispatcher } from "./engine/dispatcher.ts";
import { Engine, type EngineRequest } from "./engine/engine.ts";
import type { Change, Outcome, Response } from "./engine/records.ts";
import { TransactionOver } from "./engine/sql.ts";
import { type Store, TooLarge } from "./engine/store.ts";
import { Connections, type PollConnection } from "./wire/poll-connections.ts";

/** The largest number of requests in one commit, so that a flood of requests does not hold up everything else. */
const BATCH_SIZE = 250;

/** How often a host drops listeners without a connection, in milliseconds. */
export const LISTENER_INTERVAL = 120_000;

/** The shortest time between two log lines about the same failure, in milliseconds. */
const LOG_INTERVAL = 10_000;

/** How many characters of a schedule's id are logged. */
const MOST_LOGGED = 200;

export interface ServerLog {
  error(fields: object, message: string): void;
}

export interface Host {
  log: ServerLog;
  /** Calls `work` once the requests that have already arrived are submitted, so that they share a commit. */
  soon(work: () => void): void;
  /** Called after each commit with its changes, which may move the next time-out. */
  onCommit?(changes: readonly Change[]): void;
  /** Called with a worker group that has a task and no connected worker. */
  onWorkerMissing?(group: string): void;
}

interface QueuedRequest {
  request: EngineRequest;
  resolve: (response: Response) => void;
}

/** The host calls {@link tick} when something is due: a process by a timer, an object by its alarm. */
export class Resonate {
  readonly #connections = new Connections();
  readonly #dispatcher: Dispatcher;
  readonly #store: Store;
  readonly #engine: Engine;
  readonly #host: Host;
  readonly #queue: QueuedRequest[] = [];
  #disconnectedAddresses = new Set<string>();
  #lastFailure = { message: "", at: 0 };
  #closed = false;

  constructor(store: Store, host: Host) {
    this.#store = store;
    this.#host = host;
    const onSkipped = (err: unknown, schedule: string) =>
      host.log.error({ err, schedule: schedule.slice(0, MOST_LOGGED) }, "a schedule was skipped");
    this.#engine = new Engine(store, (group) => this.#hasWorker(group), onSkipped);
    this.#dispatcher = new Dispatcher(this.#connections, store, (group) => host.onWorkerMissing?.(group));
  }

  /** Whether a worker is connected, possibly by the host in `onWorkerMissing`. */
  #hasWorker(group: string): boolean {
    if (!this.#connections.isConnected(group)) this.#host.onWorkerMissing?.(group);
    return this.#connections.isConnected(group);
  }

  /**
   * Answers a request when its changes are on disk. Requests that arrive together share one commit, since each commit waits
   * for the disk. Never rejects: a failure is a response with status 500.
   */
  submit(request: EngineRequest): Promise<Response> {
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
    const responses = this.#commit(() => {
      const outcomes = batch.map(({ request }) => this.#apply(request));
      return { result: outcomes.map(({ response }) => response), changes: outcomes.flatMap(({ changes }) => changes) };
    });
    for (const [i, { request, resolve }] of batch.entries()) resolve(responses?.[i] ?? failed(request.kind));
  }

  #apply(request: EngineRequest): Outcome {
    try {
      return this.#store.attempt(() => this.#engine.apply(Date.now(), request));
    } catch (error) {
      if (error instanceof TooLarge)
        return { response: { kind: request.kind, head: { status: 413 }, data: error.message }, changes: [] };
      if (error instanceof TransactionOver) throw error;
      this.#host.log.error({ err: error, kind: request.kind }, "request failed");
      return { response: failed(request.kind), changes: [] };
    }
  }

  /** Handles a batch of due time-outs. False when nothing was due; undefined when the commit failed. */
  tick(): boolean | undefined {
    return this.#commit(() => {
      const { changes, parked } = this.#engine.tick(Date.now());
      return { result: changes.length + parked > 0, changes };
    });
  }

  /** The time of the next time-out, in milliseconds since the epoch. */
  get due(): number | undefined {
    return this.#store.due();
  }

  /** Commits the changes of `work`, then delivers their messages. Undefined, with nothing changed, when the commit fails. */
  #commit<T>(work: () => { result: T; changes: Change[] }): T | undefined {
    try {
      const { result, changes } = this.#store.transaction(work);
      this.#unpark(this.#dispatcher.deliver(changes));
      if (changes.length > 0) this.#host.onCommit?.(changes);
      return result;
    } catch (error) {
      this.#logFailure(error instanceof TransactionOver ? error.cause : error);
      return undefined;
    }
  }

  /** Commits what `work` writes and nobody is told of; false, with nothing changed, when the commit fails. */
  protected write(work: () => void): boolean {
    const committed = this.#commit(() => {
      work();
      return { result: true, changes: [] };
    });
    return committed ?? false;
  }

  /** Logs a failure, but not each repetition: while a disk is full, every request fails in the same way. */
  #logFailure(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const now = Date.now();
    if (message === this.#lastFailure.message && now < this.#lastFailure.at + LOG_INTERVAL) return;
    this.#lastFailure = { message, at: now };
    this.#host.log.error({ err: error }, "nothing was written");
  }

  /**
   * Opens a connection for messages; undefined when there are too many. It replaces a connection with the same group and id,
   * which may be dead without the server knowing: unclaimed tasks of the old connection are sent to another one.
   */
  connect(group: string, id: string, { isRunner = false } = {}): PollConnection | undefined {
    const before = this.#connections.named(group, id);
    const connection = this.#connections.open(group, id, isRunner);
    if (connection && before) this.disconnect(before);
    if (connection) this.#dispatcher.connected(connection);
    return connection;
  }

  /** Resolves with the next messages for `connection`, or with undefined when it is closed. */
  next(connection: PollConnection): Promise<string[] | undefined> {
    if (connection.waiting.length === 0) this.#unpark(this.#dispatcher.refill(connection));
    return this.#connections.next(connection);
  }

  /** Whether a group has an unclaimed task but no connected worker. */
  isWaiting(group: string): boolean {
    return (
      !this.#connections.isConnected(group) && this.#store.unclaimedTasks(group, { timer: 0, id: "" }, 1).length > 0
    );
  }

  /** Records that these parked or deferred tasks have been dispatched. */
  #unpark(tasks: readonly string[]): void {
    if (tasks.length === 0) return;
    const now = Date.now();
    this.write(() => {
      for (const id of tasks) this.#store.unpark(id, now);
    });
    this.#host.onCommit?.([]);
  }

  /** The runner behind `connection` has no code for a task: the task is deferred until a retry, or until a worker connects. */
  decline(task: string, connection: PollConnection): void {
    this.#dispatcher.declined(task, connection);
    this.write(() => this.#store.defer(task, Date.now()));
  }

  disconnect(connection: PollConnection): void {
    this.#connections.close(connection);
    this.#dispatcher.disconnected(connection);
  }

  /**
   * Drops the listeners whose address has no connection now and had none at the last call. Listeners are stored so that a
   * client that reconnects after a restart gets its news, but clients never remove them: a promise that stays pending would
   * collect them. A host calls this at intervals.
   */
  dropDisconnectedListeners(): void {
    const disconnected = new Set<string>();
    this.write(() => {
      for (const address of this.#store.listenerAddresses()) {
        if (this.#connections.find(address)) continue;
        if (this.#disconnectedAddresses.has(address)) this.#store.deleteListeners(address);
        else disconnected.add(address);
      }
    });
    this.#disconnectedAddresses = disconnected;
  }

  /** Answers the queued requests, ends all connections and closes the store. */
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
