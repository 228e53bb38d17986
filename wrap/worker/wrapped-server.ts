/** A wrapped server in a worker: its connections, one for all callers or one per caller, and the slots of its calls. */
import { setTimeout as delay } from "node:timers/promises";
import { ProtocolError, SdkHttpError } from "@modelcontextprotocol/client";
import { LRUCache } from "lru-cache";
import * as z from "zod";
import { callerOf } from "../../core/author/caller.ts";
import { HOUR, type Log, RetryableError, type Step } from "../../core/author/context.ts";
import { splitKey } from "../../core/resonate/ids.ts";
import { jsonOf } from "../../core/resonate/json.ts";
import type { Fetch } from "../../features/files/public-fetch.ts";
import type { Snapshot } from "../snapshot.ts";
import type { WrapOptions } from "../wrap-options.ts";
import { CallsInFlight } from "./call/call-in-flight.ts";
import { type Slot, Slots } from "./call/slots.ts";
import { Connection } from "./connection/connection.ts";
import { type Environment, filled, filledAll, programEnvironment } from "./connection/environment.ts";
import { AnswerLost, NotSent, notOpened, OpenFailed, Unsendable } from "./connection/errors.ts";
import { guardedFetch } from "./connection/guarded-fetch.ts";
import type { Target } from "./connection/target.ts";
import { canHost } from "./host/host-connection.ts";
import { snapshotOf } from "./snapshot-file.ts";

/** How long a server at a URL may take to answer when a connection is opened, and a program to start; in milliseconds. */
const CONNECT = 30_000;
const START = 10 * 60_000;
/** How often a caller hears that a server has not answered yet, in milliseconds. */
const TELL = 5_000;
/** The pauses between attempts, in milliseconds. A connection that ends before the shortest life counts as failed. */
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 30_000;
const SHORTEST_LIFE = 5_000;
/** How long a program goes on without a worker, in milliseconds: until a killed worker's jobs have moved on. */
const KEEP = 120_000;
/** After this time, in milliseconds, a caller hears that the call waits for its turn. */
const WAITING = 1_000;
/** How many calls a worker makes at once by default. */
const CONCURRENCY = 16;
/** The revision to speak if the newest one cannot serve a tool. */
const OLDER = "2025-11-25";
/** How often to check whether a retired connection is idle, in milliseconds. */
const RETIRING = 5_000;
/** Stands for all callers without credentials of their own, and for `look`. */
const OTHERS = "*";
/** The largest number of callers with separate connections. */
const MAX_CALLERS = 100;

/** One connection, which is reopened after it was lost. */
class ReconnectingConnection {
  #connection: Promise<Connection> | undefined;
  #began = 0;
  #failures = 0;
  #notBefore = 0;
  readonly #open: () => Promise<Connection>;

  constructor(open: () => Promise<Connection>) {
    this.#open = open;
  }

  async get(): Promise<Connection> {
    const before = this.#connection;
    const current = await before?.catch(() => undefined);
    if (current?.isOpen) return current;
    // Another call may be opening the connection. A second instance of a program would get calls that the first one already has.
    if (this.#connection !== before) return this.get();
    const wait = this.#notBefore - Date.now();
    if (wait > 0) throw new RetryableError(`it is tried again in ${Math.ceil(wait / 1_000)} s`, { retryAfter: wait });
    const opening = this.#open();
    this.#connection = opening;
    this.#began = Date.now();
    try {
      const connection = await opening;
      void connection.closed.then(() => {
        if (this.#connection === opening) this.#ended();
      });
      return connection;
    } catch (error) {
      this.#connection = undefined;
      this.#ended(true);
      throw error;
    }
  }

  /** Gives up a connection whose session the server has forgotten. Its other calls go on, because each has a stream of its own. */
  async drop(connection: Connection): Promise<void> {
    if ((await this.#connection?.catch(() => undefined)) !== connection) return;
    this.#connection = undefined;
    this.#ended();
    // In the 2026-07-28 revision each subscription has a stream, too.
    if (connection.era === "legacy") connection.updates.close(new AnswerLost("the server has forgotten the session"));
    void idle(connection).then(() => connection.close().catch(() => {}));
  }

  /** Leaves a hosted program to the next worker; resolves with whether the program goes on. */
  async leave(): Promise<boolean> {
    return (await this.#connection?.catch(() => undefined))?.leave() === true;
  }

  async close(): Promise<void> {
    const current = await this.#connection?.catch(() => undefined);
    await current?.close().catch(() => {});
  }

  /** Closes the connection once its calls have ended and their answers are recorded, and `isUsed` says that its host may end. */
  async retire(isUsed: (host: string | undefined) => boolean): Promise<void> {
    await idle(await this.#connection?.catch(() => undefined), isUsed);
    await this.close();
  }

  #ended(hasFailed = Date.now() - this.#began < SHORTEST_LIFE): void {
    this.#failures = hasFailed ? this.#failures + 1 : 0;
    if (hasFailed) this.#notBefore = Date.now() + Math.min(FIRST_PAUSE * 2 ** (this.#failures - 1), LONGEST_PAUSE);
  }
}

/** Resolves when no call uses the connection any more. */
async function idle(connection: Connection | undefined, isUsed = (_host: string | undefined) => false): Promise<void> {
  do await delay(RETIRING, undefined, { ref: false });
  while (connection?.isOpen && !(connection.isIdle && !isUsed(connection.host)));
}

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
  #older: "untried" | "spoken" | "works" | "refused" = "untried";
  #credentials: ReadonlyMap<string, Record<string, string>> | undefined;
  /** Called with the server's tools when a connection is opened, and when the tools have changed. */
  onTools: ((snapshot: Snapshot, log: Log) => void) | undefined;

  /** `hosted`: whether the program outlives this process when the process is killed. */
  constructor(options: WrapOptions, env: Environment, hosted = false) {
    this.options = options;
    this.#env = env;
    this.#isHosted = hosted && options.keep !== 0 && canHost();
    this.#fetch = guardedFetch(options.allowPrivate === true);
    this.#slots = new Slots(options.processes ?? options.concurrency ?? CONCURRENCY);
  }

  /**
   * The connection for the caller that a job belongs to. If the server takes long to answer, `tell` hears of it.
   *
   * @throws {NotSent} saying why there is no connection
   */
  connection(jobName: string, log: Log, tell?: (what: string) => void): Promise<Connection> {
    return this.#telling(tell, this.#connected(jobName, log));
  }

  #telling<T>(tell: (what: string) => void = () => {}, answer: Promise<T>): Promise<T> {
    const { name } = this.options;
    const began = Date.now();
    const telling = setInterval(
      () => tell(`${name} has not answered for ${Math.round((Date.now() - began) / 1_000)} s`),
      TELL,
    );
    return answer.finally(() => clearInterval(telling));
  }

  async #connected(jobName: string, log: Log, caller = this.#callerOf(jobName)): Promise<Connection> {
    const { name } = this.options;
    const connection = await this.#connectionOf(jobName, log, caller).catch((error) => {
      throw new Unsendable(reason(error), { cause: error });
    });
    try {
      return await connection.get();
    } catch (error) {
      if (isPrivate(error)) throw new Unsendable(`${name} cannot be reached: ${reason(error)}`, { cause: error });
      if (error instanceof RetryableError) {
        throw new RetryableError(`${name} cannot be reached: ${error.message}`, { retryAfter: error.retryAfter });
      }
      throw new NotSent(`${name} cannot be reached: ${reason(error)}`, { cause: error });
    }
  }

  /** The server's present description of itself and its lists. @throws {NotSent} */
  async look(log: Log, tell?: (what: string) => void): Promise<Snapshot> {
    const caller = this.options.credentials === undefined ? "" : OTHERS;
    const seen = async () => snapshotOf(await this.#connected("", log, caller), this.#startTimeout);
    return this.#telling(tell, seen());
  }

  get #startTimeout(): number {
    const { startTimeout, url } = this.options;
    return startTimeout ?? (url === undefined ? START : CONNECT);
  }

  /** Leaves the program to the next worker of the same deployment. Without a program host the program ends. */
  async handOver(): Promise<void> {
    const left = await Promise.all([...this.#connections.values()].map((connection) => connection.leave()));
    if (!left.every(Boolean)) await this.close();
  }

  /** Gives up a connection, so that the next call opens another one. */
  async drop(jobName: string, connection: Connection, log: Log): Promise<void> {
    await (await this.#connectionOf(jobName, log)).drop(connection);
  }

  /**
   * Keeps the program that has a job's task, for as long as a task may be silent: another worker may go on with the job. `host`:
   * the session in which the task was made; undefined where no program is kept.
   */
  holdTask(jobName: string, host: string | undefined): void {
    const { url, timeout = HOUR } = this.options;
    if (url === undefined && host !== undefined) this.#tasks.set(jobName, { host, until: Date.now() + timeout });
  }

  #hasTask(host: string | undefined): boolean {
    for (const [job, { until }] of this.#tasks) if (until <= Date.now()) this.#tasks.delete(job);
    return [...this.#tasks.values()].some((each) => each.host === host);
  }

  /** To be called when a job has ended. */
  forget(jobName: string): void {
    this.calls.forget(jobName);
    this.#tasks.delete(jobName);
  }

  /** Waits for a slot among the calls that are made at once; rejects when `signal` is aborted before. */
  async takeSlot(jobName: string, signal: AbortSignal, { progress }: Pick<Step, "progress">): Promise<Slot> {
    const { name, processes } = this.options;
    const what = processes === undefined ? "calls at once" : "processes, which keep calls that wait for an answer";
    const tell = () => progress(0, undefined, `waits for its turn: ${name} has ${this.#slots.count} ${what}`);
    const timer = setTimeout(tell, WAITING);
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
  speakOlder(log: Log): boolean {
    const { name, revision } = this.options;
    if (revision !== undefined || this.#older === "refused") return false;
    if (this.#older !== "untried") return true;
    log.warn(`${name} has a tool that the ${this.#revision} revision does not serve: ${OLDER} is spoken from now on`);
    this.#older = "spoken";
    this.#revision = OLDER;
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
    const known = this.#connections.get(key);
    if (known) return known;
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
      const snapshot = await snapshotOf(connection, this.#startTimeout).catch(() => undefined);
      if (!snapshot) return;
      connection.tools = snapshot.tools;
      this.onTools?.(snapshot, log);
    };
    let reading = Promise.resolve();
    let isWaiting = false;
    /** The lists are read one time after another: an answer about an earlier change must not come after one about a later. */
    const changed = () => {
      if (!isWaiting) reading = reading.then(read);
      isWaiting = true;
      return reading;
    };
    const connection = await Connection.open({
      target,
      log,
      timeout: this.#startTimeout,
      revision: this.#revision,
      asked: this.options.revision,
      onListsChanged: () => void changed(),
    }).catch((error) => {
      // The server may speak only the newest revision: the next attempt negotiates again.
      if (this.#older === "spoken" || (this.#older === "works" && isAnswer(error)))
        [this.#older, this.#revision] = ["refused", undefined];
      throw error;
    });
    this.#revision = connection.revision;
    if (this.#older === "spoken" && connection.era === "legacy") this.#older = "works";
    await changed();
    return connection;
  }

  async #target(caller: string): Promise<Target> {
    const { name, url, headers = {}, command, args = [], env = {}, cwd } = this.options;
    const own = await this.#credentialsOf(caller);
    if (url !== undefined) {
      const all = filledAll({ ...headers, ...own }, this.#env, name);
      return { url: new URL(filled(url, this.#env, name)), headers: all, fetch: this.#fetch };
    }
    return {
      command: filled(command ?? "", this.#env, name),
      args: args.map((each) => filled(each, this.#env, name)),
      env: programEnvironment({ ...filledAll(env, this.#env, name), ...own }, this.#env),
      cwd: cwd ?? process.cwd(),
      hosted: this.#isHosted ? { keep: this.options.keep ?? KEEP, deployment: deploymentOf(this.#env) } : undefined,
    };
  }

  /** The headers, or variables, that a caller's connection gets. */
  async #credentialsOf(caller: string): Promise<Record<string, string>> {
    const { credentials: variable, name } = this.options;
    if (variable === undefined) return {};
    this.#credentials ??= await readCredentials(this.#env[variable], variable);
    const others = this.#credentials.get(OTHERS);
    // A server may list its tools to anyone, so `look` needs no credentials.
    const own = this.#credentials.get(caller) ?? others ?? (caller === OTHERS ? {} : undefined);
    if (!own) throw new Error(`this caller has no credentials for ${name}`);
    return own;
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

/** Whether the server's address was refused. */
const isPrivate = (error: unknown): boolean =>
  error instanceof Error && (error.name === "PrivateAddress" || isPrivate(error.cause));

/** Headers or variables by caller. */
const Credentials = z.record(z.string(), z.record(z.string(), z.string()));

async function readCredentials(text: string | undefined, variable: string) {
  const { data } = Credentials.safeParse(jsonOf(text ?? ""));
  if (!data) throw new Error(`${variable} must be JSON: from callers to objects of names and values`);
  const entries = Object.entries(data).map(
    async ([id, values]) => [id === OTHERS ? id : (await callerOf(id)).key, values] as const,
  );
  return new Map(await Promise.all(entries));
}

/** System error codes in words. */
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ENOTFOUND: "there is no host of that name",
  EAI_AGAIN: "the name of its host could not be looked up",
  ENOENT: "there is no such program, or no folder to run it in",
  EACCES: "the program may not be run",
};

/** The message of the innermost cause. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof SdkHttpError) return notOpened(error);
  const { cause, message, code } = error as Error & { code?: unknown };
  if (cause instanceof Error && !(error instanceof OpenFailed)) return reason(cause);
  const isOfSystem = "syscall" in error || message === "" || /^UND_ERR/.test(String(code));
  if (typeof code !== "string" || !isOfSystem) return message;
  return WORDS[code] === undefined ? code : `${WORDS[code]} (${code})`;
}
