/** A wrapped server in a worker: its connections, one for all callers or one per caller, and the slots of its calls. */
import { ProtocolError, SdkHttpError } from "@modelcontextprotocol/client";
import { LRUCache } from "lru-cache";
import { HOUR, type Log, RetryableError, type Step } from "../../core/author/index.ts";
import { splitKey } from "../../core/resonate/index.ts";
import type { Fetch } from "../../worker/connection/index.ts";
import type { Snapshot } from "../snapshot.ts";
import type { WrapOptions } from "../wrap-options.ts";
import { CallsInFlight } from "./call/calls-in-flight.ts";
import { type Slot, Slots } from "./call/slots.ts";
import { Connection } from "./connection/connection.ts";
import { OTHER_CALLERS, readCredentials } from "./connection/credentials.ts";
import { type Environment, expand, expandAll, programEnvironment } from "./connection/environment.ts";
import { guardedFetch } from "./connection/guarded-fetch.ts";
import { isAddressRefused, reasonOf } from "./connection/open-failure.ts";
import { ReconnectingConnection } from "./connection/reconnecting-connection.ts";
import type { Target } from "./connection/target.ts";
import { hasLostSession, NotSent, Unsendable } from "./host/errors.ts";
import { canHost } from "./host/host-connection.ts";
import { snapshotOf } from "./server-snapshot.ts";

/** How long a server at a URL may take to answer when a connection is opened, and a program to start; in milliseconds. */
const URL_TIMEOUT_MS = 30_000;
const PROGRAM_START_TIMEOUT_MS = 10 * 60_000;
/** How often a caller is notified that a server has not answered yet, in milliseconds. */
const SILENCE_REPORT_INTERVAL_MS = 5_000;
/** How long a program continues without a worker, in milliseconds: until a killed worker's jobs have moved. */
const PROGRAM_TTL_MS = 120_000;
/** After this time, in milliseconds, a caller is notified that the call waits for its turn. */
const TURN_REPORT_DELAY_MS = 1_000;
/** How many calls a worker makes at once by default. */
const DEFAULT_CONCURRENCY = 16;
/** The revision to speak if the newest one cannot serve a tool. */
const OLDER_REVISION = "2025-11-25";
/** The maximum number of callers with separate connections. */
const MAX_CALLERS = 100;

export class WrappedServer {
  readonly options: WrapOptions;
  readonly calls = new CallsInFlight();
  readonly #slots: Slots;
  /** The slot indices of jobs, if each slot is a process. */
  readonly #processes = new Map<string, number>();
  readonly #env: Environment;
  readonly #isHosted: boolean;
  readonly #fetch: Fetch;
  /** By caller key, which is empty for a connection of all callers, and process. */
  readonly #connections = new LRUCache<string, ReconnectingConnection>({
    max: MAX_CALLERS,
    dispose: (connection) => void connection.retire((host) => this.#hasTask(host)),
  });
  /** By job, the program host that has its task, and until when it is kept. Between two polls a task has no request. */
  readonly #tasks = new Map<string, { host: string; until: number }>();
  #revision: string | undefined;
  /** Whether an older revision than the server's newest is spoken because a tool needs it, and has been accepted. */
  #fallback: "untried" | "spoken" | "works" | "refused" = "untried";
  #credentials: ReadonlyMap<string, Record<string, string>> | undefined;
  /** Called with the server's tools when a connection is opened, and when the tools have changed. */
  onTools: ((snapshot: Snapshot, log: Log) => void) | undefined;

  /** `isHosted`: whether the program outlives this process when the process is killed. */
  constructor(options: WrapOptions, env: Environment, isHosted = false) {
    this.options = options;
    this.#env = env;
    this.#isHosted = isHosted && options.keep !== 0 && canHost();
    this.#fetch = guardedFetch(options.allowPrivate === true);
    this.#slots = new Slots(options.processes ?? options.concurrency ?? DEFAULT_CONCURRENCY);
  }

  /**
   * The connection for the caller that a job belongs to. If the server takes long to answer, `report` says so.
   *
   * @throws {NotSent} saying why there is no connection
   */
  connection(jobName: string, log: Log, report?: (message: string) => void): Promise<Connection> {
    return this.#withSilenceReports(report, this.#connect(jobName, log));
  }

  #withSilenceReports<T>(report: (message: string) => void = () => {}, answer: Promise<T>): Promise<T> {
    const { name } = this.options;
    const start = Date.now();
    const timer = setInterval(
      () => report(`${name} has not answered for ${Math.round((Date.now() - start) / 1_000)} s`),
      SILENCE_REPORT_INTERVAL_MS,
    );
    return answer.finally(() => clearInterval(timer));
  }

  async #connect(jobName: string, log: Log, caller = this.#callerOf(jobName)): Promise<Connection> {
    const { name } = this.options;
    const connection = await this.#connectionOf(jobName, log, caller).catch((error) => {
      throw new Unsendable(reasonOf(error), { cause: error });
    });
    try {
      return await connection.get();
    } catch (error) {
      if (isAddressRefused(error)) {
        throw new Unsendable(`${name} cannot be reached: ${reasonOf(error)}`, { cause: error });
      }
      if (error instanceof RetryableError) {
        throw new RetryableError(`${name} cannot be reached: ${error.message}`, { retryAfter: error.retryAfter });
      }
      throw new NotSent(`${name} cannot be reached: ${reasonOf(error)}`, { cause: error });
    }
  }

  /** The server's present description of itself and its lists. @throws {NotSent} */
  async currentSnapshot(log: Log, report?: (message: string) => void): Promise<Snapshot> {
    const caller = this.options.credentials === undefined ? "" : OTHER_CALLERS;
    const read = async () => snapshotOf(await this.#connect("", log, caller), this.#startTimeout);
    return this.#withSilenceReports(report, read());
  }

  get #startTimeout(): number {
    const { startTimeout, url } = this.options;
    return startTimeout ?? (url === undefined ? PROGRAM_START_TIMEOUT_MS : URL_TIMEOUT_MS);
  }

  /** Leaves the program to the next worker of the same deployment. Without a program host the program ends. */
  async handOver(): Promise<void> {
    const continues = await Promise.all([...this.#connections.values()].map((connection) => connection.leave()));
    if (!continues.every(Boolean)) await this.close();
  }

  /** Gives up a connection, so that the next call opens another one. */
  async drop(jobName: string, connection: Connection, log: Log): Promise<void> {
    await (await this.#connectionOf(jobName, log)).drop(connection);
  }

  /**
   * Keeps the program that has a job's task, for as long as a task may be silent: another worker may continue the job. `host`: the
   * session in which the task was created; undefined if no program is kept.
   */
  keepTask(jobName: string, host: string | undefined): void {
    const { url, timeout = HOUR } = this.options;
    if (url === undefined && host !== undefined) this.#tasks.set(jobName, { host, until: Date.now() + timeout });
  }

  #hasTask(host: string | undefined): boolean {
    for (const [job, { until }] of this.#tasks) if (until <= Date.now()) this.#tasks.delete(job);
    return [...this.#tasks.values()].some((task) => task.host === host);
  }

  /** To be called when a job has finished. */
  forget(jobName: string): void {
    this.calls.forget(jobName);
    this.#tasks.delete(jobName);
  }

  /** Waits for a slot among the calls that are made at once; rejects when `signal` is aborted before. */
  async takeSlot(jobName: string, signal: AbortSignal, { progress }: Pick<Step, "progress">): Promise<Slot> {
    const { name, processes } = this.options;
    const limit = processes === undefined ? "calls at once" : "processes, which keep calls that wait for an answer";
    const report = () => progress(0, undefined, `waits for its turn: ${name} has ${this.#slots.count} ${limit}`);
    const timer = setTimeout(report, TURN_REPORT_DELAY_MS);
    const slot = await this.#slots.take(splitKey(jobName).key, signal).finally(() => clearTimeout(timer));
    if (processes === undefined) return slot;
    this.#processes.set(jobName, slot.index);
    const free = () => {
      if (this.#processes.get(jobName) === slot.index) this.#processes.delete(jobName);
      slot.free();
    };
    return { ...slot, free };
  }

  /**
   * Speaks the 2025 revisions from now on, over new connections, because a tool has said that the newer revision cannot serve it.
   * Returns false if the options fix the revision, or if the server speaks no older one.
   */
  fallBack(log: Log): boolean {
    const { name, revision } = this.options;
    if (revision !== undefined || this.#fallback === "refused") return false;
    if (this.#fallback !== "untried") return true;
    log.warn(
      `${name} has a tool that the ${this.#revision} revision does not serve: ${OLDER_REVISION} is spoken from now on`,
    );
    this.#fallback = "spoken";
    this.#revision = OLDER_REVISION;
    this.#connections.clear();
    return true;
  }

  /** Ends all connections and programs. */
  async close(): Promise<void> {
    for (const connection of this.#connections.values()) void connection.close();
    this.#connections.clear();
  }

  /** The caller whose connection a job uses; empty for a connection of all callers. */
  #callerOf(jobName: string): string {
    return this.options.credentials === undefined ? "" : splitKey(jobName).key;
  }

  async #connectionOf(jobName: string, log: Log, caller = this.#callerOf(jobName)): Promise<ReconnectingConnection> {
    const key = `${caller} ${this.#processes.get(jobName) ?? 0}`;
    const current = this.#connections.get(key);
    if (current) return current;
    const target = await this.#target(caller);
    // Another call may have come first. A second instance of a program would soon be ended, together with its tasks.
    let connection = this.#connections.get(key);
    if (!connection) {
      connection = new ReconnectingConnection(() => this.#open(target, log));
      this.#connections.set(key, connection);
    }
    return connection;
  }

  async #open(target: Target, log: Log): Promise<Connection> {
    const read = async () => {
      isWaiting = false;
      const snapshot = await snapshotOf(connection, this.#startTimeout).catch((error: Error) => {
        // A call, or the next change, makes the handshake anew.
        const isLost = hasLostSession(error.cause);
        if (isLost) for (const one of this.#connections.values()) void one.drop(connection);
      });
      if (!snapshot) return;
      connection.tools = snapshot.tools;
      this.onTools?.(snapshot, log);
    };
    let reading = Promise.resolve();
    let isWaiting = false;
    /** The lists are read one time after another: an answer about an earlier change must not come after one about a later. */
    const onListsChanged = () => {
      if (!isWaiting) reading = reading.then(read);
      isWaiting = true;
      return reading;
    };
    const connection = await Connection.open({
      target,
      log,
      timeout: this.#startTimeout,
      revision: this.#revision,
      fixedRevision: this.options.revision,
      onListsChanged,
    }).catch((error) => {
      // The server may speak only the newest revision: the next attempt negotiates again.
      if (this.#fallback === "spoken" || (this.#fallback === "works" && isAnswer(error))) {
        this.#fallback = "refused";
        this.#revision = undefined;
      }
      throw error;
    });
    this.#revision = connection.revision;
    if (this.#fallback === "spoken" && connection.era === "legacy") this.#fallback = "works";
    await onListsChanged();
    return connection;
  }

  async #target(caller: string): Promise<Target> {
    const { name, url, headers = {}, command, args = [], env = {}, cwd } = this.options;
    const credentials = await this.#credentialsOf(caller);
    if (url !== undefined) {
      const allHeaders = expandAll({ ...headers, ...credentials }, this.#env, name);
      return { url: new URL(expand(url, this.#env, name)), headers: allHeaders, fetch: this.#fetch };
    }
    return {
      command: expand(command ?? "", this.#env, name),
      args: args.map((arg) => expand(arg, this.#env, name)),
      env: programEnvironment({ ...expandAll(env, this.#env, name), ...credentials }, this.#env),
      cwd: cwd ?? process.cwd(),
      hosting: this.#isHosted
        ? { keep: this.options.keep ?? PROGRAM_TTL_MS, deployment: deploymentOf(this.#env) }
        : undefined,
    };
  }

  /** The headers, or variables, that a caller's connection gets. */
  async #credentialsOf(caller: string): Promise<Record<string, string>> {
    const { credentials: variable, name } = this.options;
    if (variable === undefined) return {};
    this.#credentials ??= await readCredentials(this.#env[variable], variable);
    // A server may list its tools to anyone, so reading its lists needs no credentials.
    const credentials =
      this.#credentials.get(caller) ??
      this.#credentials.get(OTHER_CALLERS) ??
      (caller === OTHER_CALLERS ? {} : undefined);
    if (!credentials) throw new Error(`this caller has no credentials for ${name}`);
    return credentials;
  }
}

/** Identifies a deployment among those with workers on the same machine. */
const deploymentOf = (env: Environment): string => {
  const { RESONATE_URL, RESONATE_NAMESPACE, RESONATE_GROUP, WORKER_GROUP, WRAP_FOLDER } = env;
  // `wrap` starts the program before it knows the other addresses.
  return WRAP_FOLDER ?? JSON.stringify([RESONATE_URL, RESONATE_NAMESPACE, RESONATE_GROUP, WORKER_GROUP]);
};

/** Whether the server has answered that it does not accept the connection. */
const isAnswer = (error: unknown): boolean =>
  error instanceof ProtocolError || (error instanceof SdkHttpError && error.status === 400);
