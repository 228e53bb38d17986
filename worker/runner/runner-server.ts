/** Runs jobs inside the account's own Cloudflare Workers. Each task wakes the runner, and runs until its next suspension. */

import { NonRetryableError } from "../../core/author/context.ts";
import type { Implementation } from "../../core/author/implement.ts";
import { TRACE_TAG, traceparentIn } from "../../core/author/trace-context.ts";
import { currentPass } from "../../core/engine/guard/guard.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { endpointOf } from "../../core/resonate/connection/endpoint.ts";
import type { LeaseRef, PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { localId } from "../../core/resonate/ids.ts";
import { located, type ObjectAddress, type ResonateNamespace } from "../../core/resonate/object-address.ts";
import { locationInWorkers } from "../../features/files/location-in-workers.ts";
import { Figures, type RunnerNews } from "../../features/operators/figures.ts";
import type { FailedJob } from "../../features/operators/worker-report.ts";
import { type Composition, compose } from "../composition.ts";
import { codeFor, type FoundCode } from "../execution/code.ts";
import { type Instruments, type LineLog, reasonOf } from "../execution/instruments.ts";
import { lineLog } from "./log.ts";

/** How long this runner keeps a task without a heartbeat, in milliseconds. */
const LEASE = 15_000;

/** Bounds on memory, in bytes: an isolate has 128 MB. */
const MEMORY = { journals: 16_000_000, promises: 8_000_000 };

interface Wake {
  task: LeaseRef;
  promise: PromiseRecord;
  /** The address at which settlements are reported to this runner, if any. */
  news?: string;
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

/** A Cloudflare Worker serves no metrics of its own: figures come from its logs on the platform. */
const instruments: Instruments = {
  metrics: () => ({ count: () => {}, observe: () => {} }),
  settled: () => {},
  retried: () => {},
  leaseLost: () => {},
  spanOf: ({ tags }) => traceparentIn(tags[TRACE_TAG]),
  surroundingSpan: () => undefined,
  inSpan: (_name, _about, work) => work(),
};

/**
 * Runs the jobs of an account inside its Cloudflare Workers. `runnerObject` of `durable-mcp-edge/edge` loads it with the durable
 * functions.
 *
 * @example
 * const RunnerObject = runnerObject(async () => ({ RunnerServer }), async () => ({ runs: [waitForSiteRun] }));
 */
export class RunnerServer {
  readonly #parts: Composition;
  /** The figures for operators, which the answer to a task reports. */
  readonly #figures = new Figures(() => {});
  #address: string | undefined;

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
    hearRejections(log);
    const endpoint = endpointOf({
      RESONATE_URL: RESONATE_URL || "http://resonate",
      RESONATE_TOKEN,
      ENCRYPTION_KEYS,
      RESONATE_GROUP,
      RESONATE_NAMESPACE: namespace,
      ...(!RESONATE_URL && RESONATE && { RESONATE: located(RESONATE, env) }),
    });
    this.#parts = compose({
      client: new ResonateClient({ ...endpoint, timeout: LEASE }),
      endpoint,
      implementations: implementations.map(withoutContainer),
      env: Object.fromEntries(Object.entries(env).filter(([, value]) => typeof value === "string")),
      leaseTime: LEASE,
      log,
      instruments,
      // The account's Resonate server itself tells callers' objects of starts and ends.
      reports: { figures: this.#figures, ended: () => {}, started: () => {} },
      memory: MEMORY,
      fileLocation: locationInWorkers(env),
    });
  }

  /**
   * Runs the task that a request names; answers when its job has ended or sleeps, or if another runner has it. A task is not
   * claimed if this runner lacks its function, or if no key decrypts it: then the answer is `{"isKnown": false}`.
   */
  async fetch(request: Request): Promise<Response> {
    if (new URL(request.url).pathname === "/news") return this.#settled((await request.json()) as Unblock[]);
    const { task, promise: sealed, news } = (await request.json()) as Wake;
    this.#listenAt(news);
    const { acquire, executor, heartbeat, kindOf, kinds } = this.#parts;
    const code = await this.#codeFor(sealed);
    if (!code) return Response.json({ isKnown: false });
    const acquired = await acquire(task);
    if (acquired) await executor.execute(acquired, code, kindOf(task.id)).finally(() => heartbeat.stop(acquired.task));
    const had = this.#figures.takeNews();
    const failed = await Promise.all(had.failed.map(readable));
    const told: RunnerNews = { kinds, news: { ...had, failed } };
    return Response.json({ isKnown: true, told });
  }

  /** Sets the address at which settlements are reported from now on. Reports to an earlier address may be lost. */
  #listenAt(address: string | undefined): void {
    if (address === this.#address) return;
    this.#address = address;
    if (address === undefined) this.#parts.watcher.disconnected();
    else this.#parts.watcher.connected(address);
  }

  async #settled(messages: readonly Unblock[]): Promise<Response> {
    for (const { data } of messages) {
      // A promise that no key decrypts is not reported; its reader gets the error.
      const promise = await this.#parts.client.opened(data.promise).catch(() => undefined);
      if (promise) this.#parts.watcher.settled(promise);
    }
    return new Response();
  }

  async #codeFor(sealed: PromiseRecord): Promise<FoundCode | undefined> {
    const { client, implementations, namespace, log } = this.#parts;
    let reason = "no function for this job here";
    const promise = await client.opened(sealed).catch((error) => {
      reason = String(error);
      return undefined;
    });
    const code = promise && codeFor(promise, implementations);
    if (!code) log.warn({ job: localId(sealed.id, namespace), reason }, "job left alone");
    return code;
  }
}

/** Whether rejections are heard in this isolate, which several runners share. */
let isHearing = false;

/** From now on, a rejection that nothing handles fails the job whose function caused it. Node has no such event. */
function hearRejections(log: LineLog): void {
  if (isHearing) return;
  isHearing = true;
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
