/**
 * The embedded Resonate server without its transport: it accepts requests, and sends answers and messages once the changes are
 * on disk. `wire/` parses requests, `node/` and `object/` host the server.
 */
import { Dispatcher } from "./dispatcher.ts";
import { Engine, type EngineRequest } from "./engine.ts";
import { type PollConnection, PollConnections } from "./poll-connections.ts";
import type { Change, Outcome, Response } from "./records.ts";
import { TransactionRolledBack } from "./sql.ts";
import { PromiseTooLarge, type Store } from "./store.ts";

/** The largest number of requests in one commit, so that a flood of requests does not hold up everything else. */
const MAX_BATCH_REQUESTS = 250;

/** How often a host drops listeners without a connection. */
export const LISTENER_SWEEP_INTERVAL_MS = 120_000;

/** The shortest time between two log lines about the same failure. */
const MIN_LOG_INTERVAL_MS = 10_000;

const MAX_LOGGED_ID_CHARACTERS = 200;

export interface ServerLog {
  error(fields: object, message: string): void;
}

export interface Host {
  log: ServerLog;
  /** Calls `work` once the requests that have already arrived are submitted, so that they share a commit. */
  runSoon(work: () => void): void;
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
  readonly #connections = new PollConnections();
  readonly #dispatcher: Dispatcher;
  readonly #store: Store;
  readonly #engine: Engine;
  readonly #host: Host;
  readonly #queue: QueuedRequest[] = [];
  #disconnectedAddresses = new Set<string>();
  #lastFailure = { message: "", at: 0 };
  #isClosed = false;

  constructor(store: Store, host: Host) {
    this.#store = store;
    this.#host = host;
    const onScheduleSkipped = (err: unknown, schedule: string) =>
      host.log.error({ err, schedule: schedule.slice(0, MAX_LOGGED_ID_CHARACTERS) }, "a schedule was skipped");
    this.#engine = new Engine(store, (group) => this.#hasWorker(group), onScheduleSkipped);
    this.#dispatcher = new Dispatcher(this.#connections, store.queue, (group) => host.onWorkerMissing?.(group));
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
      if (this.#isClosed) return resolve(internalError(request.kind));
      if (this.#queue.length === 0) this.#host.runSoon(() => this.#answer());
      this.#queue.push({ request, resolve });
    });
  }

  #answer(): void {
    const batch = this.#queue.splice(0, MAX_BATCH_REQUESTS);
    if (batch.length === 0) return;
    if (this.#queue.length > 0) this.#host.runSoon(() => this.#answer());
    const responses = this.#commit(() => {
      const outcomes = batch.map(({ request }) => this.#apply(request));
      return { result: outcomes.map(({ response }) => response), changes: outcomes.flatMap(({ changes }) => changes) };
    });
    for (const [i, { request, resolve }] of batch.entries()) resolve(responses?.[i] ?? internalError(request.kind));
  }

  #apply(request: EngineRequest): Outcome {
    try {
      return this.#store.attempt(() => this.#engine.apply(Date.now(), request));
    } catch (error) {
      if (error instanceof PromiseTooLarge)
        return { response: { kind: request.kind, head: { status: 413 }, data: error.message }, changes: [] };
      if (error instanceof TransactionRolledBack) throw error;
      this.#host.log.error({ err: error, kind: request.kind }, "request failed");
      return { response: internalError(request.kind), changes: [] };
    }
  }

  /** Handles a batch of due time-outs. False if nothing was due; undefined if the commit failed. */
  tick(): boolean | undefined {
    return this.#commit(() => {
      const { changes, parkedCount } = this.#engine.tick(Date.now());
      return { result: changes.length + parkedCount > 0, changes };
    });
  }

  /** The time of the next time-out, in milliseconds since the epoch. */
  get nextTimeout(): number | undefined {
    return this.#store.nextTimeout();
  }

  /** Commits the changes of `work`, then delivers their messages. Undefined, with nothing changed, if the commit fails. */
  #commit<T>(work: () => { result: T; changes: Change[] }): T | undefined {
    try {
      const { result, changes } = this.#store.transaction(work);
      this.#unpark(this.#dispatcher.deliver(changes));
      if (changes.length > 0) this.#host.onCommit?.(changes);
      return result;
    } catch (error) {
      this.#logFailure(error instanceof TransactionRolledBack ? error.cause : error);
      return undefined;
    }
  }

  /** Commits what `work` writes, without a notification; false, with nothing changed, if the commit fails. */
  protected write(work: () => void): boolean {
    const isWritten = this.#commit(() => {
      work();
      return { result: true, changes: [] };
    });
    return isWritten ?? false;
  }

  /** Logs a failure, but not each repetition: while a disk is full, every request fails in the same way. */
  #logFailure(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const now = Date.now();
    if (message === this.#lastFailure.message && now < this.#lastFailure.at + MIN_LOG_INTERVAL_MS) return;
    this.#lastFailure = { message, at: now };
    this.#host.log.error({ err: error }, "nothing was written");
  }

  /**
   * Opens a connection for messages; undefined if there are too many. It replaces a connection with the same group and id,
   * which may be dead without the server knowing: unclaimed tasks of the old connection are sent to another one.
   */
  connect(group: string, id: string, { isRunner = false } = {}): PollConnection | undefined {
    const previous = this.#connections.byId(group, id);
    const connection = this.#connections.open(group, id, isRunner);
    if (connection) this.#dispatcher.onConnect(connection, previous);
    if (connection && previous) this.disconnect(previous);
    return connection;
  }

  /** Resolves with the next messages for `connection`, or with undefined when it is closed. */
  next(connection: PollConnection): Promise<string[] | undefined> {
    if (connection.queue.length === 0) this.#unpark(this.#dispatcher.refill(connection));
    return this.#connections.next(connection);
  }

  /** Whether a group has an unclaimed task but no connected worker. */
  needsWorker(group: string): boolean {
    return (
      !this.#connections.isConnected(group) && this.#store.queue.tasksOf(group, { timer: 0, id: "" }, 1).length > 0
    );
  }

  /** Records that these parked or deferred tasks have been dispatched. */
  #unpark(tasks: readonly string[]): void {
    if (tasks.length === 0) return;
    const now = Date.now();
    this.write(() => {
      for (const id of tasks) this.#store.queue.unpark(id, now);
    });
    this.#host.onCommit?.([]);
  }

  /** The runner behind `connection` has no code for a task: the task is deferred until a retry, or until a worker connects. */
  decline(task: string, connection: PollConnection): void {
    this.#dispatcher.onDecline(task, connection);
    this.write(() => this.#store.queue.defer(task, Date.now()));
  }

  disconnect(connection: PollConnection): void {
    this.#connections.close(connection);
    this.#dispatcher.onDisconnect(connection);
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

  /** Answers the queued requests, closes all connections, then the store. */
  close(): void {
    this.#isClosed = true;
    while (this.#queue.length > 0) this.#answer();
    this.#connections.closeAll();
    this.#store.close();
  }
}

function internalError(kind: string): Response {
  return { kind, head: { status: 500 }, data: "Internal error: the request was not carried out" };
}
