/** Runs jobs inside the account's own Cloudflare Workers. Each task wakes the runner, and runs until its next suspension. */

import { type Implementation, NonRetryableError } from "../../core/author/index.ts";
import { currentPass } from "../../core/engine/index.ts";
import { type FailedJob, kindIn, type LineLog, type RunnerNews, reasonOf, WorkerStats } from "../../core/jobs/index.ts";
import {
  endpointOf,
  type LeaseRef,
  localId,
  type ObjectAddress,
  type PromiseRecord,
  ResonateClient,
  type ResonateNamespace,
  withLocation,
} from "../../core/resonate/index.ts";
import { FileStorage } from "../../features/files/kept-files.ts";
import { locationInWorkers } from "../../features/files/location-in-workers.ts";
import { traceIds } from "../../features/trace/task.ts";
import { type Composition, compose } from "../composition.ts";
import type { TaskFunction } from "../execution/functions.ts";
import { lineLog } from "./log.ts";

/** How long this runner keeps a task without a heartbeat. */
const LEASE_TIME_MS = 15_000;

/** Bounds on memory: an isolate has 128 MB. */
const MEMORY_LIMITS = { journalBytes: 16_000_000, promiseCharacters: 8_000_000 };

/** The request to run a task. */
interface Wake {
  task: LeaseRef;
  promise: PromiseRecord;
  /** The address at which settlements are reported to this runner, if any. */
  newsAddress?: string;
}

interface RunnerEnv extends ObjectAddress {
  RESONATE?: ResonateNamespace;
  RESONATE_URL?: string;
  RESONATE_TOKEN?: string;
  ENCRYPTION_KEYS?: string;
  RESONATE_GROUP?: string;
  RESONATE_NAMESPACE?: string;
  LOG_LEVEL?: string;
}

/** A server's report that a promise has settled. */
interface Unblock {
  data: { promise: PromiseRecord };
}

/**
 * Runs the jobs of an account inside its Cloudflare Workers. `runnerObject` of `durable-mcp-edge/edge` loads it with the durable
 * functions. A Cloudflare Worker serves no metrics and exports no spans of its own: both come from its logs on the platform.
 *
 * @example
 * const RunnerObject = runnerObject(async () => ({ RunnerServer }), async () => ({ runs: [waitForSiteRun] }));
 */
export class RunnerServer {
  readonly #parts: Composition;
  readonly #client: ResonateClient;
  readonly #namespace: string;
  readonly #log: LineLog;
  /** What operators are told: the answer to a task reports it. */
  readonly #stats = new WorkerStats(() => {});
  #newsAddress: string | undefined;

  constructor(env: object, implementations: readonly Implementation[]) {
    const {
      RESONATE,
      RESONATE_URL,
      RESONATE_TOKEN,
      ENCRYPTION_KEYS,
      RESONATE_GROUP = "workers",
      RESONATE_NAMESPACE: namespace = "",
      LOG_LEVEL,
    }: RunnerEnv = env;
    const log = lineLog(LOG_LEVEL);
    watchRejections(log);
    const endpoint = endpointOf({
      RESONATE_URL: RESONATE_URL || "http://resonate",
      RESONATE_TOKEN,
      ENCRYPTION_KEYS,
      RESONATE_GROUP,
      RESONATE_NAMESPACE: namespace,
      ...(!RESONATE_URL && RESONATE && { RESONATE: withLocation(RESONATE, env) }),
    });
    const location = locationInWorkers(env);
    this.#client = new ResonateClient({ ...endpoint, timeout: LEASE_TIME_MS });
    this.#namespace = namespace;
    this.#log = log;
    this.#parts = compose({
      client: this.#client,
      endpoint,
      implementations: implementations.map(withoutContainer),
      env: Object.fromEntries(Object.entries(env).filter(([, value]) => typeof value === "string")),
      leaseTimeMs: LEASE_TIME_MS,
      log,
      files: location && new FileStorage(location),
      // The account's Resonate server itself reports starts and ends to callers' objects.
      stats: this.#stats,
      trace: traceIds,
      memory: MEMORY_LIMITS,
    });
  }

  /**
   * Runs the task that a request names; answers when its job has ended or sleeps, or if another runner has it. A task is not
   * claimed if this runner lacks its function, or if no key decrypts it: then the answer is `{"isKnown": false}`.
   */
  async fetch(request: Request): Promise<Response> {
    if (new URL(request.url).pathname === "/news") return this.#settled((await request.json()) as Unblock[]);
    const { task, promise: sealed, newsAddress } = (await request.json()) as Wake;
    this.#listenAt(newsAddress);
    const { leases, executor, heartbeat, kinds } = this.#parts;
    const taskFunction = await this.#find(sealed);
    if (!taskFunction) return Response.json({ isKnown: false });
    const acquired = await leases.claim(task);
    if (acquired) await executor.execute(acquired, taskFunction).finally(() => heartbeat.stop(acquired.task));
    const news = this.#stats.takeNews();
    const failed = await Promise.all(news.failed.map(readable));
    const report: RunnerNews = { kinds, news: { ...news, failed } };
    return Response.json({ isKnown: true, report });
  }

  /** Sets the address at which settlements are reported from now on. Reports to an earlier address may be lost. */
  #listenAt(address: string | undefined): void {
    if (address === this.#newsAddress) return;
    this.#newsAddress = address;
    if (address === undefined) this.#parts.watcher.noteDisconnected();
    else this.#parts.watcher.noteConnected(address);
  }

  async #settled(messages: readonly Unblock[]): Promise<Response> {
    for (const { data } of messages) {
      // A promise that no key decrypts is not reported; its reader gets the error.
      const promise = await this.#client.decodeRecord(data.promise).catch(() => undefined);
      if (promise) this.#parts.watcher.noteSettled(promise);
    }
    return new Response();
  }

  async #find(sealed: PromiseRecord): Promise<TaskFunction | undefined> {
    let reason = "no function for this job here";
    const promise = await this.#client.decodeRecord(sealed).catch((error) => {
      reason = String(error);
      return undefined;
    });
    const taskFunction = promise && this.#parts.find(promise);
    if (!taskFunction) {
      const name = localId(sealed.id, this.#namespace);
      this.#log.warn({ job: name, reason }, "job left alone");
      const kind = promise && kindIn(promise);
      if (kind) await this.#parts.observe({ type: "unhandled", kind, name, promise, isFirst: true });
    }
    return taskFunction;
  }
}

/** Whether rejections are watched in this isolate, which several runners share. */
let isWatchingRejections = false;

/** From now on, a rejection that nothing handles fails the job whose function caused it. Node has no such event. */
function watchRejections(log: LineLog): void {
  if (isWatchingRejections) return;
  isWatchingRejections = true;
  globalThis.addEventListener?.("unhandledrejection", ({ reason }) => {
    currentPass()?.unhandledRejection(reason);
    log.error({ reason: reasonOf(reason) }, "unhandled rejection");
  });
}

/** The failure with a stack that names lines of the source files. */
async function readable({ stack, ...failed }: FailedJob): Promise<FailedJob> {
  if (stack === undefined) return failed;
  const { inSources } = await import("./source-lines.ts");
  return { ...failed, stack: inSources(stack) };
}

/** Makes jobs that need a container fail at once, because a runner is not in one. */
function withoutContainer(implementation: Implementation): Implementation {
  const { kind, runs } = implementation.job;
  if (runs !== "container") return implementation;
  const refuse = async () => {
    throw new NonRetryableError(
      `${kind} needs a container, and this deployment runs jobs in Workers: start a worker, or deploy with a container`,
    );
  };
  return { ...implementation, versionOf: () => refuse };
}
