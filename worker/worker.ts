import type { Implementation } from "../core/author/implement.ts";
import { FORM } from "../core/jobs/form.ts";
import { ResonateClient } from "../core/resonate/connection/client.ts";
import { endpointOf } from "../core/resonate/connection/endpoint.ts";
import { checkSupport } from "../core/resonate/support.ts";
import { locationOf } from "../features/files/location.ts";
import { publicFetch } from "../features/files/public-fetch.ts";
import { sweepRepeatedly } from "../features/files/sweep-repeatedly.ts";
import { instruments, resonateRequests } from "../features/metrics/metrics.ts";
import { strayErrors } from "../features/stray-errors/step.ts";
import { attemptSpans } from "../features/trace/step.ts";
import { EdgeReports } from "../features/worker-reports/edge-reports.ts";
import { type Composition, compose } from "./composition.ts";
import { batched } from "./connection/batches.ts";
import { post } from "./connection/post.ts";
import { reasonOf } from "./execution/instruments.ts";
import { TaskIntake } from "./intake/task-intake.ts";
import type { Logger } from "./process/logger.ts";
import type { WorkerConfig } from "./process/worker-config.ts";

/** Takes jobs from the Resonate server and executes them, a limited number of each kind at once, until `stop`. */
export class Worker {
  readonly #config: WorkerConfig;
  readonly #log: Logger;
  readonly #group: string;
  readonly #parts: Composition;
  readonly #intake: TaskIntake;
  readonly #reports: EdgeReports | undefined;
  /** Ends the connection over which tasks are dispatched. */
  readonly #closed = new AbortController();
  /** When the connection was lost, by `performance.now()`; undefined while there is one. */
  #disconnectedSince: number | undefined = Number.NEGATIVE_INFINITY;

  /**
   * @throws {Error} naming the variables that an implementation needs and the environment lacks; or if no implementation
   *   belongs to this worker's group
   */
  constructor(config: WorkerConfig, implementations: readonly Implementation[], env: NodeJS.ProcessEnv, log: Logger) {
    const leaseTime = Math.ceil(config.LEASE_SECONDS * 1000);
    this.#config = config;
    this.#log = log;
    this.#group = config.WORKER_GROUP ?? config.RESONATE_GROUP;
    this.#checkGroup(implementations);
    const endpoint = endpointOf(config);
    const client = new ResonateClient({
      ...endpoint,
      exchange: batched(post),
      timeout: Math.min(10_000, leaseTime),
      onRequest: (kind, status) => resonateRequests.inc({ kind, status: status ?? "none" }),
    });
    const { namespace } = endpoint;
    const { EDGE_URL = config.PUBLIC_URL, VIEW_KEY: key } = config;
    const about = () => ({
      ...{ worker: this.#parts.pid, group: this.#group, form: FORM, kinds: this.#parts.kinds },
      ...{ running: this.running, most: config.MAX_TASKS, connected: this.connected },
    });
    this.#reports =
      EDGE_URL && key ? new EdgeReports({ url: EDGE_URL, key, client, namespace, log, about }) : undefined;
    this.#parts = compose({
      client,
      endpoint,
      implementations,
      env,
      leaseTime,
      log,
      instruments,
      reports: this.#reports,
      attempts: [config.OTEL_EXPORTER_OTLP_ENDPOINT ? attemptSpans : undefined, strayErrors].filter(
        (each) => each !== undefined,
      ),
      fileLocation: locationOf(env),
      fetchPublic: publicFetch(env.FILES_FROM_PRIVATE === "1"),
    });
    this.#intake = new TaskIntake(this.#parts, { maxTasks: config.MAX_TASKS, maxQueued: config.MAX_QUEUED });
  }

  #checkGroup(implementations: readonly Implementation[]): void {
    const others = implementations.filter(({ job }) => (job.group ?? this.#config.RESONATE_GROUP) !== this.#group);
    if (others.length === 0) return;
    const kinds = others.map(({ job }) => job.kind);
    if (others.length === implementations.length) {
      throw new Error(
        `WORKER_GROUP: this worker takes the jobs of the group ${this.#group}, and none of its kinds is of that group: ${kinds.join(", ")}`,
      );
    }
    this.#log.info({ group: this.#group, kinds }, "these kinds are run by workers of other groups");
  }

  /** Whether jobs can arrive at the moment. */
  get connected(): boolean {
    return this.#disconnectedSince === undefined;
  }

  get running(): number {
    return this.#intake.running;
  }

  get stopping(): boolean {
    return this.#closed.signal.aborted;
  }

  /** For how long no job could arrive, in milliseconds: 0 while the worker is connected, infinity before it ever was. */
  get disconnectedFor(): number {
    return this.#disconnectedSince === undefined ? 0 : performance.now() - this.#disconnectedSince;
  }

  /**
   * Begins to take jobs; resolves once the first can arrive.
   *
   * @throws {Error} if the server refuses the token, its release is not supported, or this worker must not run beside the
   *   edge's version
   */
  async start(): Promise<void> {
    const { RESONATE_URL, RESONATE_NAMESPACE } = this.#config;
    const { client, pid, rules, watcher, files } = this.#parts;
    const unsupported = await checkSupport(client, RESONATE_NAMESPACE);
    if (unsupported) throw new Error(`RESONATE_URL ${RESONATE_URL}: ${unsupported.words}`);
    await this.#reports?.start();
    if (files) void sweepRepeatedly(files, client, this.#log, this.#closed.signal);
    const connected = Promise.withResolvers<void>();
    void client.connections.listen({
      group: this.#group,
      id: pid,
      signal: this.#closed.signal,
      onMessage: (message) => {
        if (message.kind === "unblock") watcher.settled(message.promise);
        else this.#intake.dispatch(message.task);
      },
      onConnect: (address) => {
        this.#disconnectedSince = undefined;
        // The connection may replace a quiet one, to a server that is gone.
        rules.askAgain();
        watcher.connected(address);
        connected.resolve();
      },
      onDisconnect: (reason) => this.#disconnected(reason),
    });
    return connected.promise;
  }

  /**
   * Takes no new jobs, and releases those that wait for a slot. Gives running jobs `DRAIN_SECONDS` to finish, then releases them
   * too, so that another worker takes them.
   */
  async stop(): Promise<void> {
    this.#closed.abort();
    await this.#intake.stop(this.#config.DRAIN_SECONDS * 1000);
    await this.#reports?.close();
  }

  #disconnected(reason: Error | undefined): void {
    this.#disconnectedSince ??= performance.now();
    this.#parts.watcher.disconnected();
    // The server may have another release when it is back.
    this.#parts.rules.reset();
    if (this.stopping) return;
    if (reason) this.#log.warn({ reason: reasonOf(reason) }, "connection to Resonate failed");
    else this.#log.info("connection to Resonate ended");
  }
}
