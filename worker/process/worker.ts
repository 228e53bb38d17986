import type { WorkerFeature } from "../../core/feature.ts";
import { type LineLog, type Observe, reasonOf } from "../../core/jobs/index.ts";
import { checkSupport, type ResonateClient, type ServerRules } from "../../core/resonate/index.ts";
import type { PromiseWatcher } from "../connection/promise-watcher.ts";
import type { TaskIntake } from "../intake/task-intake.ts";

interface WorkerParts {
  client: ResonateClient;
  /** The id of this worker. */
  pid: string;
  rules: ServerRules;
  watcher: PromiseWatcher;
  intake: TaskIntake;
  features: readonly WorkerFeature[];
  observe: Observe;
  log: LineLog;
}

interface WorkerOptions {
  /** The address and the namespace of the Resonate server, for messages. */
  url: string;
  namespace: string;
  /** The group whose tasks it takes. */
  group: string;
  /** How long running jobs may take to finish when the worker stops. */
  drainTimeoutMs: number;
}

/** Takes jobs from the Resonate server and executes them, a limited number of each kind at once, until `stop`. */
export class Worker {
  readonly #parts: WorkerParts;
  readonly #options: WorkerOptions;
  /** Ends the connection over which tasks are dispatched. */
  readonly #closed = new AbortController();
  /** When the connection was lost, by `performance.now()`; undefined while there is one. */
  #disconnectedSince: number | undefined = Number.NEGATIVE_INFINITY;

  constructor(parts: WorkerParts, options: WorkerOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  get features(): readonly WorkerFeature[] {
    return this.#parts.features;
  }

  /** Whether jobs can arrive at the moment. */
  get isConnected(): boolean {
    return this.#disconnectedSince === undefined;
  }

  /** How many jobs are executed. */
  get running(): number {
    return this.#parts.intake.running;
  }

  get isStopping(): boolean {
    return this.#closed.signal.aborted;
  }

  /** For how long no job could arrive: 0 while the worker is connected, infinity before it ever was. */
  get disconnectedMs(): number {
    return this.#disconnectedSince === undefined ? 0 : performance.now() - this.#disconnectedSince;
  }

  /**
   * Begins to take jobs; resolves once the first can arrive.
   *
   * @throws {Error} if the server refuses the token, its release is not supported, or this worker must not run beside the
   *   edge's version
   */
  async start(): Promise<void> {
    const { client, pid, features, watcher, intake } = this.#parts;
    const { url, namespace, group } = this.#options;
    const unsupported = await checkSupport(client, namespace);
    if (unsupported) throw new Error(`RESONATE_URL ${url}: ${unsupported.message}`);
    for (const feature of features) await feature.open?.(this.#closed.signal);
    const connected = Promise.withResolvers<void>();
    void client.connections.listen({
      group,
      id: pid,
      signal: this.#closed.signal,
      onMessage: (message) => {
        if (message.kind === "unblock") watcher.noteSettled(message.promise);
        else intake.dispatch(message.task);
      },
      onConnect: (address) => {
        this.#connected(address);
        connected.resolve();
      },
      onDisconnect: (reason) => this.#disconnected(reason),
    });
    return connected.promise;
  }

  /**
   * Takes no new jobs, and releases those that wait for a slot. Gives running jobs time to finish, then releases them too, so that
   * another worker takes them.
   */
  async stop(): Promise<void> {
    this.#closed.abort();
    await this.#parts.intake.stop(this.#options.drainTimeoutMs);
    for (const feature of this.#parts.features) await feature.close?.();
  }

  #connected(address: string): void {
    const { rules, watcher, observe } = this.#parts;
    this.#disconnectedSince = undefined;
    // The connection may replace a quiet one, to a server that is gone.
    rules.askAgain();
    watcher.noteConnected(address);
    void observe({ type: "connection", isOpen: true });
  }

  #disconnected(reason: Error | undefined): void {
    const { rules, watcher, observe, log } = this.#parts;
    this.#disconnectedSince ??= performance.now();
    watcher.noteDisconnected();
    // The server may have another release when it is back.
    rules.reset();
    void observe({ type: "connection", isOpen: false });
    if (this.isStopping) return;
    if (reason) log.warn({ reason: reasonOf(reason) }, "connection to Resonate failed");
    else log.info("connection to Resonate ended");
  }
}
