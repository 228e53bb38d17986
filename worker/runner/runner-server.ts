/** Runs jobs inside the account's own Workers: each task that it is woken with, to its next suspension. */

import type { Implementation } from "../../core/author/implement.ts";
import { NonRetryableError } from "../../core/definitions/context.ts";
import { RemoteStore } from "../../core/jobs/remote-store.ts";
import { ResonateClient } from "../../core/store/client.ts";
import { endpointOf } from "../../core/store/endpoint.ts";
import { localId, splitGeneration, splitKey } from "../../core/store/ids.ts";
import { type ObjectAddress, placed, type ResonateNamespace } from "../../core/store/object-address.ts";
import type { LeaseRef, PromiseRecord } from "../../core/store/protocol.ts";
import type { FoundCode } from "../execution/code.ts";
import { Executor } from "../execution/executor.ts";
import { Heartbeat } from "../execution/heartbeat.ts";
import type { Instruments, LineLog } from "../execution/instruments.ts";
import { Pauses } from "../intake/pauses.ts";
import { PromiseWatcher } from "../intake/promise-watch.ts";
import { lineLog } from "./log.ts";

/** How long a task stays this runner's without a sign of life, in milliseconds: one that is gone is run elsewhere then. */
const LEASE = 15_000;

/** What it remembers, of jobs that sleep and of promises, in bytes: it has 128 MB for all. */
const MEMORY = 16_000_000;
const NEWS = 8_000_000;

interface Woken {
  task: LeaseRef;
  promise: PromiseRecord;
  /** Where it can have news sent to; undefined when there is none. */
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

/** The news of a promise, as a server sends it. */
interface Unblock {
  data: { promise: PromiseRecord };
}

/** A Worker has no counters that anybody asks for: what it logs is counted by the platform. */
const instruments: Instruments = {
  metrics: { count: () => {}, observe: () => {} },
  settled: () => {},
  retried: () => {},
  leaseLost: () => {},
  contained: (_about, run) => run(),
  inSpan: (_name, _about, work) => work(),
};

/**
 * Runs the jobs of an account inside its Workers: what `runnerObject` of `durable-mcp-edge/edge` loads, made of the durable
 * functions. A project exports it from a module of its own, which is built beside the edge's.
 *
 * @example
 * const createRunner = (env: object) => new RunnerServer(env, [waitForSiteRun]);
 */
export class RunnerServer {
  readonly #client: ResonateClient;
  readonly #executor: Executor;
  readonly #implementations: readonly Implementation[];
  readonly #namespace: string;
  readonly #log: LineLog;
  readonly #heartbeat: Heartbeat;
  readonly #pauses: Pauses;
  readonly #news: PromiseWatcher;
  readonly #pid = crypto.randomUUID();
  /** Where the object sends news to, for this runner. */
  #address: string | undefined;

  constructor(env: object, implementations: readonly Implementation[]) {
    const {
      RESONATE,
      RESONATE_URL,
      RESONATE_TOKEN,
      ENCRYPTION_KEYS,
      RESONATE_GROUP = "workers",
      RESONATE_NAMESPACE = "",
    }: RunnerEnv = env;
    const place = endpointOf({
      RESONATE_URL: RESONATE_URL || "http://resonate",
      RESONATE_TOKEN,
      ENCRYPTION_KEYS,
      RESONATE_GROUP,
      RESONATE_NAMESPACE,
      ...(!RESONATE_URL && RESONATE && { RESONATE: placed(RESONATE, env) }),
    });
    this.#client = new ResonateClient({ ...place, timeout: LEASE });
    this.#namespace = RESONATE_NAMESPACE;
    this.#implementations = implementations.map(withoutContainer);
    this.#pauses = new Pauses(this.#client, RESONATE_NAMESPACE, LEASE);
    this.#heartbeat = new Heartbeat(this.#client, this.#pid, LEASE);
    this.#news = new PromiseWatcher(this.#client, NEWS);
    this.#log = lineLog((env as RunnerEnv).LOG_LEVEL);
    const texts = Object.entries(env).filter(([, value]) => typeof value === "string");
    this.#executor = new Executor({
      implementations: this.#implementations,
      env: Object.fromEntries(texts),
      client: this.#client,
      store: new RemoteStore(
        place,
        this.#implementations.map(({ job }) => job),
        {},
        this.#client,
      ),
      news: this.#news,
      heartbeat: this.#heartbeat,
      lease: LEASE,
      memory: MEMORY,
      namespace: RESONATE_NAMESPACE,
      nameOf: (id) => this.#nameOf(id),
      log: this.#log,
      instruments,
    });
  }

  /**
   * Runs the task that a request names; answers when its job has ended or sleeps, or was not to be had. A task whose job
   * there is no code for, or that no key of this deployment decrypts, is not claimed: `{"isKnown": false}`.
   */
  async fetch(request: Request): Promise<Response> {
    if (new URL(request.url).pathname === "/news") return this.#hear((await request.json()) as Unblock[]);
    const { task: offered, promise: stored, news } = (await request.json()) as Woken;
    this.#listen(news);
    const { id, version } = offered;
    const runnable = await this.#codeFor(stored);
    if (!runnable) return Response.json({ isKnown: false });
    const data = { id, version, pid: this.#pid, ttl: LEASE, records: this.#executor.recordsWanted(offered) };
    const answer = await this.#client.send("task.acquire", data, { origin: id });
    if (answer.status === 200) {
      if (!(await this.#isPaused(answer.data.task, runnable)))
        await this.#executor.execute(answer.data, runnable, this.#kindOf(id));
    }
    return Response.json({ isKnown: true });
  }

  /** News comes to this address from now on. What was to come to another one may be lost. */
  #listen(address: string | undefined): void {
    if (address === this.#address) return;
    this.#address = address;
    if (address === undefined) this.#news.disconnected();
    else this.#news.connected(address);
  }

  async #hear(messages: readonly Unblock[]): Promise<Response> {
    for (const { data } of messages) {
      // What no key of this deployment decrypts is not told: whoever waits for it finds out when it asks.
      const promise = await this.#client.opened(data.promise).catch(() => undefined);
      if (promise) this.#news.heard(promise);
    }
    return new Response();
  }

  async #codeFor(stored: PromiseRecord): Promise<FoundCode | undefined> {
    let reason = "no function for this job here";
    const promise = await this.#client.opened(stored).catch((error) => {
      reason = String(error);
      return undefined;
    });
    const runnable = promise && this.#executor.codeFor(promise);
    if (!runnable) this.#log.warn({ job: this.#nameOf(stored.id), reason }, "job left alone");
    return runnable;
  }

  /** Whether its kind of job is paused: it sleeps until that goes on. */
  async #isPaused(task: LeaseRef, runnable: FoundCode): Promise<boolean> {
    return typeof runnable !== "string" && this.#pauses.holds(task, runnable.implementation.job.kind);
  }

  #kindOf(id: string): string {
    const { base } = splitGeneration(splitKey(this.#nameOf(id)).name);
    return this.#implementations.find(({ job }) => job.owns(base))?.job.kind ?? "unknown";
  }

  #nameOf(id: string): string {
    return localId(id, this.#namespace);
  }
}

/** A kind of job that needs a container ends at once where there is none, and says so. */
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
