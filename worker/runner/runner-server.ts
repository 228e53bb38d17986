/** Runs jobs inside the account's own Workers: each task that wakes the runner, to its next suspension. */
import type { Implementation } from "../../core/author/implement.ts";
import { NonRetryableError } from "../../core/definitions/context.ts";
import { TRACE_TAG, traceparentIn } from "../../core/definitions/trace-context.ts";
import { locationInWorkers } from "../../core/jobs/files/location-in-workers.ts";
import { Figures, type RunnerNews } from "../../core/jobs/operating/figures.ts";
import type { FailedJob } from "../../core/jobs/operating/worker-report.ts";
import { ResonateClient } from "../../core/store/connection/client.ts";
import { endpointOf } from "../../core/store/connection/endpoint.ts";
import type { LeaseRef, PromiseRecord } from "../../core/store/connection/protocol.ts";
import { located, type ObjectAddress, type ResonateNamespace } from "../../core/store/object-address.ts";
import { type Composition, compose } from "../composition.ts";
import type { FoundCode } from "../execution/code.ts";
import type { Instruments } from "../execution/instruments.ts";
import { lineLog } from "./log.ts";

/** How long a task stays this runner's without a heartbeat, in milliseconds. */
const LEASE = 15_000;

/** Bounds on memory, in bytes: an isolate has 128 MB. */
const MEMORY = { journals: 16_000_000, promises: 8_000_000 };

interface Wake {
  task: LeaseRef;
  promise: PromiseRecord;
  /** The address for reports of settlements; absent when there is none. */
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

/** The report that a promise has settled, as a server sends it. */
interface Unblock {
  data: { promise: PromiseRecord };
}

/** A Worker serves no metrics: the platform counts its logs. */
const instruments: Instruments = {
  metrics: { count: () => {}, observe: () => {} },
  settled: () => {},
  retried: () => {},
  leaseLost: () => {},
  attempt: (_about, run) => run(),
  spanOf: ({ tags }) => traceparentIn(tags[TRACE_TAG]),
  surroundingSpan: () => undefined,
  inSpan: (_name, _about, work) => work(),
};

/**
 * Runs the jobs of an account inside its Workers; `runnerObject` of `durable-mcp-edge/edge` loads it with the durable functions.
 * A project exports it from a separate module, which is built beside the edge's.
 *
 * @example
 * const createRunner = (env: object) => new RunnerServer(env, [waitForSiteRun]);
 */
export class RunnerServer {
  readonly #parts: Composition;
  readonly #kinds: Record<string, number>;
  /** What the answer to a task tells operators. */
  readonly #figures = new Figures(() => {});
  /** The address for reports of settlements to this runner. */
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
    const endpoint = endpointOf({
      RESONATE_URL: RESONATE_URL || "http://resonate",
      RESONATE_TOKEN,
      ENCRYPTION_KEYS,
      RESONATE_GROUP,
      RESONATE_NAMESPACE: namespace,
      ...(!RESONATE_URL && RESONATE && { RESONATE: located(RESONATE, env) }),
    });
    this.#kinds = Object.fromEntries(implementations.map(({ job }) => [job.kind, job.version]));
    this.#parts = compose({
      client: new ResonateClient({ ...endpoint, timeout: LEASE }),
      endpoint,
      implementations: implementations.map(withoutContainer),
      env: Object.fromEntries(Object.entries(env).filter(([, value]) => typeof value === "string")),
      namespace,
      lease: LEASE,
      log: lineLog(LOG_LEVEL),
      instruments,
      // The account's Resonate server tells callers' objects of ends and starts itself.
      reports: { figures: this.#figures, ended: () => {}, started: () => {} },
      memory: MEMORY,
      fileLocation: locationInWorkers(env),
    });
  }

  /**
   * Runs the task that a request names; answers when its job has ended or sleeps, or another runner has it. A task without a
   * function here, or that no key of this deployment decrypts, is not claimed: `{"isKnown": false}`.
   */
  async fetch(request: Request): Promise<Response> {
    if (new URL(request.url).pathname === "/news") return this.#settled((await request.json()) as Unblock[]);
    const { task, promise: sealed, news } = (await request.json()) as Wake;
    this.#listenAt(news);
    const { client, pid, lease, executor, names, pauses } = this.#parts;
    const { id, version } = task;
    const code = await this.#codeFor(sealed);
    if (!code) return Response.json({ isKnown: false });
    const data = { id, version, pid, ttl: lease, records: executor.recordsWanted(task) };
    const answer = await client.send("task.acquire", data, { origin: id });
    if (answer.status === 200) {
      const kind = typeof code === "string" ? undefined : code.implementation.job.kind;
      const isPaused = kind !== undefined && (await pauses.suspendIfPaused(answer.data.task, kind));
      if (!isPaused) await executor.execute(answer.data, code, names.kindOf(id));
    }
    const had = this.#figures.takeNews();
    const failed = await Promise.all(had.failed.map(readable));
    const told: RunnerNews = { kinds: this.#kinds, news: { ...had, failed } };
    return Response.json({ isKnown: true, told });
  }

  /** Settlements are reported to this address from now on; reports to the address before may be lost. */
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
    const { client, executor, names, log } = this.#parts;
    let reason = "no function for this job here";
    const promise = await client.opened(sealed).catch((error) => {
      reason = String(error);
      return undefined;
    });
    const code = promise && executor.codeFor(promise);
    if (!code) log.warn({ job: names.nameOf(sealed.id), reason }, "job left alone");
    return code;
  }
}

/** A failure whose stack names lines of the sources. */
const readable = async ({ stack, ...failed }: FailedJob): Promise<FailedJob> =>
  stack === undefined ? failed : { ...failed, stack: await inSources(stack) };

/** Makes jobs that need a container fail at once, because a runner has none. */
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

/** Set by the builder where the module is beside the runner's code, which is bundled. */
declare const STACKS_MODULE: string | undefined;

/** Names the sources' lines in a stack, where the code is bundled; not in one that cannot be told. */
async function inSources(stack: string): Promise<string> {
  if (typeof STACKS_MODULE === "undefined") return stack;
  const { inSources } = await load(STACKS_MODULE).catch(() => ({ inSources: (same: string) => same }));
  return inSources(stack);
}

/** Not a literal: the bundler would look for a file beside this one. */
const load = (module: string): Promise<{ inSources(stack: string): string }> => import(module);
