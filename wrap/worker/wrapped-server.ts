/** A wrapped server as a worker has it: connected to when it is needed, again when it is lost, for each caller who needs his own. */

import { LRUCache } from "lru-cache";
import PQueue from "p-queue";
import { callerOf } from "../../core/definitions/caller.ts";
import { type Log, RetryLater } from "../../core/definitions/context.ts";
import { splitKey } from "../../core/store/ids.ts";
import type { Snapshot } from "../snapshot.ts";
import type { WrapOptions } from "../wrap-options.ts";
import { Connection } from "./connection.ts";
import { filled, filledAll, programEnvironment } from "./environment.ts";
import { NotSent, Unsendable } from "./errors.ts";
import { type Fetch, guardedFetch } from "./guarded-fetch.ts";
import { canKeep } from "./keeper/attach.ts";
import { LiveCalls } from "./live.ts";
import { snapshotOf } from "./take.ts";
import type { Target } from "./target.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** How long it may take to answer when it is connected to, in milliseconds. */
const CONNECT = 30_000;
/** The pauses between attempts, in milliseconds; a connection that held for less than the shortest life has failed as well. */
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 30_000;
const SHORTEST_LIFE = 5_000;
/** How long a program goes on without a worker, in milliseconds: a killed one's jobs move on after its lease, and an offer. */
const KEEP = 120_000;
/** Callers with a connection of their own, at most. */
const MAX_CALLERS = 100;

/** One connection, made again when it is lost. */
class Link {
  #connection: Promise<Connection> | undefined;
  #failures = 0;
  #notBefore = 0;
  readonly #open: () => Promise<Connection>;

  constructor(open: () => Promise<Connection>) {
    this.#open = open;
  }

  async get(): Promise<Connection> {
    const known = this.#connection;
    const current = await known?.catch(() => undefined);
    if (current?.isOpen) return current;
    // Others may have begun meanwhile. Of a program there must not be two: a call that one has had would be sent to the other.
    if (this.#connection !== known) return this.get();
    const wait = this.#notBefore - Date.now();
    if (wait > 0) throw new RetryLater(`it is tried again in ${Math.ceil(wait / 1_000)} s`, wait);
    const opening = this.#open();
    this.#connection = opening;
    const began = Date.now();
    try {
      const connection = await opening;
      void connection.closed.then(() => this.#ended(Date.now() - began < SHORTEST_LIFE));
      return connection;
    } catch (error) {
      this.#connection = undefined;
      this.#ended(true);
      throw error;
    }
  }

  /** What is there is not used again. */
  async drop(connection: Connection): Promise<void> {
    if ((await this.#connection?.catch(() => undefined)) === connection) this.#connection = undefined;
    await connection.close().catch(() => {});
  }

  async close(): Promise<void> {
    const current = await this.#connection?.catch(() => undefined);
    await current?.close().catch(() => {});
  }

  #ended(hasFailed: boolean): void {
    this.#failures = hasFailed ? this.#failures + 1 : 0;
    if (hasFailed) this.#notBefore = Date.now() + Math.min(FIRST_PAUSE * 2 ** (this.#failures - 1), LONGEST_PAUSE);
  }
}

export class WrappedServer {
  readonly options: WrapOptions;
  readonly calls = new LiveCalls();
  readonly #places: PQueue;
  readonly #env: Environment;
  readonly #keeps: boolean;
  readonly #fetch: Fetch;
  readonly #links = new LRUCache<string, Link>({ max: MAX_CALLERS, dispose: (link) => void link.close() });
  #revision: string | undefined;
  #credentials: ReadonlyMap<string, Record<string, string>> | undefined;
  /** Told what its tools are, whenever it is connected to, and when it says that they have changed. */
  onTools: ((snapshot: Snapshot) => void) | undefined;

  /** `keeps`: whether its program outlives this process when that is killed. */
  constructor(options: WrapOptions, env: Environment, keeps = false) {
    this.options = options;
    this.#env = env;
    this.#keeps = keeps && options.keep !== 0 && canKeep();
    this.#fetch = guardedFetch(options.allowPrivate === true);
    this.#places = new PQueue({ concurrency: options.concurrency ?? 16 });
  }

  /**
   * The connection for whoever a job belongs to.
   *
   * @throws {NotSent} saying why there is none
   */
  async connection(jobName: string, log: Log): Promise<Connection> {
    const { name } = this.options;
    const link = await this.#link(jobName, log).catch((error) => {
      throw new Unsendable(reason(error), { cause: error });
    });
    try {
      return await link.get();
    } catch (error) {
      if (isPrivate(error)) throw new Unsendable(`${name} cannot be reached: ${reason(error)}`, { cause: error });
      if (error instanceof RetryLater) throw new RetryLater(`${name} cannot be reached: ${error.message}`, error.after);
      if (error instanceof NotSent) throw error;
      throw new NotSent(`${name} cannot be reached: ${reason(error)}`, { cause: error });
    }
  }

  /** What it says of itself and of its tools now. @throws {NotSent} */
  async look(log: Log): Promise<Snapshot> {
    return snapshotOf(await this.connection("", log));
  }

  /** A connection is not used again. */
  async drop(jobName: string, connection: Connection, log: Log): Promise<void> {
    await (await this.#link(jobName, log)).drop(connection);
  }

  /**
   * Waits for a place among the calls that are made at once. Resolves with what gives it back; rejects when `signal` is
   * aborted before.
   */
  async place(signal: AbortSignal): Promise<() => void> {
    const given = Promise.withResolvers<() => void>();
    const over = Promise.withResolvers<void>();
    const giveUp = () => given.reject(new Error("the job is no longer run here"));
    if (signal.aborted) giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    void this.#places.add(async () => {
      if (signal.aborted) return;
      given.resolve(over.resolve);
      await over.promise;
    });
    return given.promise.finally(() => signal.removeEventListener("abort", giveUp));
  }

  /** Ends all connections, and programs. */
  async close(): Promise<void> {
    this.#links.clear();
  }

  async #link(jobName: string, log: Log): Promise<Link> {
    const caller = this.options.credentials === undefined ? "" : splitKey(jobName).key;
    let link = this.#links.get(caller);
    if (!link) {
      const target = await this.#target(caller);
      link = new Link(() => this.#open(target, log));
      this.#links.set(caller, link);
    }
    return link;
  }

  async #open(target: Target, log: Log): Promise<Connection> {
    const changed = async () => {
      const snapshot = await snapshotOf(connection).catch(() => undefined);
      if (!snapshot) return;
      connection.tools = snapshot.tools;
      this.onTools?.(snapshot);
    };
    const connection = await Connection.open({
      target,
      log,
      timeout: CONNECT,
      revision: this.#revision,
      onToolsChanged: () => void changed(),
    });
    this.#revision = connection.revision;
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
    const given = { ...filledAll(env, this.#env, name), ...own };
    const all = args.map((each) => filled(each, this.#env, name));
    return {
      command: filled(command ?? "", this.#env, name),
      args: all,
      env: programEnvironment(given, this.#env),
      cwd: cwd ?? process.cwd(),
      kept: this.#keeps ? { keep: this.options.keep ?? KEEP, deployment: deploymentOf(this.#env) } : undefined,
    };
  }

  /** What the requests of a caller carry. */
  async #credentialsOf(caller: string): Promise<Record<string, string>> {
    const { credentials: variable, name } = this.options;
    if (variable === undefined) return {};
    this.#credentials ??= await readCredentials(this.#env[variable], variable);
    const own = this.#credentials.get(caller) ?? this.#credentials.get("*");
    if (!own) throw new Error(`this caller has no credentials for ${name}`);
    return own;
  }
}

/** What tells a deployment from others whose workers run on the same machine. */
const deploymentOf = ({ RESONATE_URL, RESONATE_NAMESPACE, RESONATE_GROUP, WORKER_GROUP }: Environment): string =>
  JSON.stringify([RESONATE_URL, RESONATE_NAMESPACE, RESONATE_GROUP, WORKER_GROUP]);

/** Whether it is the address that is refused. */
const isPrivate = (error: unknown): boolean =>
  error instanceof Error && (error.name === "PrivateAddress" || isPrivate(error.cause));

async function readCredentials(text: string | undefined, variable: string) {
  const wrong = new Error(`${variable}: expected is JSON, from callers to objects of names and values`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text ?? "");
  } catch {
    throw wrong;
  }
  if (typeof parsed !== "object" || parsed === null) throw wrong;
  const entries = Object.entries(parsed).map(async ([id, values]) => {
    if (typeof values !== "object" || Object.values(values).some((value) => typeof value !== "string")) throw wrong;
    return [id === "*" ? id : (await callerOf(id)).key, values as Record<string, string>] as const;
  });
  return new Map(await Promise.all(entries));
}

/** What codes of the system mean here. */
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ENOTFOUND: "there is no host of that name",
  EAI_AGAIN: "the name of its host could not be looked up",
  ENOENT: "there is no such program, or no folder to run it in",
  EACCES: "the program may not be run",
};

/** The last cause says why. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause, message, code } = error as Error & { code?: unknown };
  if (cause instanceof Error && !message.includes("it wrote:")) return reason(cause);
  const isOfSystem = "syscall" in error || message === "" || /^UND_ERR/.test(String(code));
  if (typeof code !== "string" || !isOfSystem) return message;
  return WORDS[code] === undefined ? code : `${WORDS[code]} (${code})`;
}
