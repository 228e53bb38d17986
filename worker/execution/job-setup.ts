/** Prepares the execution of a job: its lease, its journal, and everything that its function and steps may use. */
import type * as z from "zod";
import { type Implementation, nextArgs } from "../../core/author/implement.ts";
import type { Job } from "../../core/author/job.ts";
import { Journal } from "../../core/engine/journal.ts";
import { type HeldTask, type Send, TaskLease, type Watch } from "../../core/engine/lease/lease.ts";
import { nameIn } from "../../core/engine/replay/commands/commands.ts";
import { readNewest } from "../../core/engine/runs.ts";
import { LeaseLost, type Runtime } from "../../core/engine/runtime.ts";
import type { StepFeature } from "../../core/engine/step-feature.ts";
import { firstSeed, ownerOf, type Resumption } from "../../core/jobs/durable-promise.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import { decodeValue, RESUMES_TAG } from "../../core/resonate/codec.ts";
import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import { ResonateRefused } from "../../core/resonate/connection/failures.ts";
import type { OperationKind, PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import type { ServerRules } from "../../core/resonate/connection/server-rules.ts";
import { localId, resumptionId, splitKey } from "../../core/resonate/ids.ts";
import { type CallbackUrl, callbackUrls } from "../../features/callbacks/callback-urls.ts";
import { ChildJobs } from "../../features/child-jobs/child-jobs.ts";
import type { Pauses } from "../../features/pauses/pauses.ts";
import { stepsToKeep } from "../../features/resume/resume.ts";
import type { PromiseWatcher } from "../connection/promise-watcher.ts";
import { environmentsOf } from "./code.ts";
import type { JobExecution } from "./ending.ts";
import type { Heartbeat } from "./heartbeat.ts";
import { type Instruments, type LineLog, logOf, type Reports, reasonOf, thrown } from "./instruments.ts";
import type { CachedJob, JournalCache, Resumed } from "./journal-cache.ts";

export interface SetupOptions {
  implementations: readonly Implementation[];
  /** The variables that the implementations read; checked when the executor is created. */
  env: Readonly<Record<string, string | undefined>>;
  /** What features do around steps. */
  steps: readonly StepFeature[];
  client: ResonateClient;
  store: RemoteStore;
  watcher: PromiseWatcher;
  rules: ServerRules;
  heartbeat: Heartbeat;
  pauses: Pauses;
  /** In milliseconds. */
  leaseTime: number;
  journals: JournalCache;
  namespace: string;
  log: LineLog;
  instruments: Instruments;
  reports?: Reports | undefined;
}

/** The beginning of the reason why a job is blocked that cannot go on in any worker, as each would get the same answer. */
export const REFUSES = "the Resonate server refuses the request";

/** Aborts what is still under way when an execution has ended. Shared, because each new error captures a stack. */
export const ENDED = new DOMException("the job is no longer run here", "AbortError");

export class JobSetup {
  readonly options: SetupOptions;
  readonly childJobs: ChildJobs;
  readonly #environments: ReadonlyMap<z.ZodType, unknown>;
  readonly #callbackUrl: CallbackUrl | undefined;

  /** @throws {Error} naming the variables that an implementation needs and the environment lacks */
  constructor(options: SetupOptions) {
    this.options = options;
    this.childJobs = new ChildJobs(options);
    this.#environments = environmentsOf(options.implementations, options.env);
    this.#callbackUrl = callbackUrls(options.env);
  }

  /**
   * The runtime for an execution of a job until `deadline`, in milliseconds since the epoch. `watchSettlement` is called before
   * what a settled job must not do; `children` collects the names of the jobs that it starts.
   */
  runtime(
    { acquired, found, cached, job: name, log }: Omit<JobExecution, "lease" | "reporter">,
    about: {
      signal: AbortSignal;
      watchSettlement: () => void;
      children: string[];
      deadline: number;
    },
  ): Runtime {
    const { promise } = acquired;
    const { storage, implementation } = found;
    const { env, job } = implementation;
    const { kind } = job;
    const { store, instruments, reports } = this.options;
    const { signal, watchSettlement, children, deadline } = about;
    const owner = ownerOf(name, promise);
    const callbackUrl = this.#callbackUrl;
    return {
      jobName: name,
      startedAt: promise.createdAt,
      deadline,
      seed: found.seed,
      owner,
      env: env ? this.#environments.get(env) : {},
      log: logOf(log),
      metrics: instruments.metrics(log),
      signal,
      start: async (child, given) => {
        watchSettlement(); // a cancelled job must not start more
        const name = await this.childJobs.start({ id: promise.id, storage }, child as Job, given, signal);
        if (signal.aborted) await this.childJobs.giveUpIfEnded(promise.id, [name]);
        children.push(name);
        return name;
      },
      cancel: async (name) => void (await store.onBehalfOf(promise.id).cancel(name)),
      nextArgs: (args) => nextArgs(job, args),
      ...(callbackUrl && { callbackUrl: (id) => callbackUrl(id, promise.timeoutAt) }),
      promiseOf: (name) => store.onBehalfOf(promise.id).idOf(name),
      ...(job.errors && { errors: job.errors }),
      ...(job.budget && { budget: job.budget }),
      ...(job.events && { events: job.events }),
      fileRoom: storage ? { usedBytes: cached.journal.files, maxBytes: storage } : undefined,
      steps: this.options.steps,
      onFailedAttempt: (error, { step, reason, retryInMs }) => {
        if (retryInMs === undefined) {
          const stack = error instanceof Error ? thrown(error)?.stack : undefined;
          if (stack) reports?.figures.threw(name, { reason: (error as Error).message, stack });
          return;
        }
        instruments.retried(kind);
        reports?.figures.count(kind, "retried");
        reports?.figures.waits({ job: name, kind, state: "failing", says: `${step}: ${reason}` });
        watchSettlement(); // a job that is cancelled in the pause must not try again
      },
    };
  }

  leaseOn(acquired: HeldTask): TaskLease {
    const { client, watcher, rules, leaseTime: patience } = this.options;
    const origin = acquired.cleansUp ?? acquired.task.id;
    const send: Send = async (kind, data) => {
      try {
        return await client.send(kind as OperationKind, data as never, { origin, patience });
      } catch (error) {
        const isRefused = error instanceof ResonateRefused && error.status === 400;
        const words = isRefused ? `${REFUSES} ${kind}` : reasonOf(error);
        throw new LeaseLost(words, { cause: error });
      }
    };
    // A promise may be awaited through any number of executions, and only the last one listens.
    const { id: job, createdAt } = acquired.promise;
    const listening = { by: `${job} ${createdAt}`, execution: acquired.task.version };
    const watch: Watch = (id, fresh, listener) => watcher.watch(id, fresh, listener, createdAt, listening);
    return new TaskLease(acquired, { send, watch, rules, features: this.options.steps });
  }

  /** The job's journal, from the cache as far as that has it, otherwise read from the server. */
  async journalOf({ task, promise }: HeldTask, lease: TaskLease, log: LineLog): Promise<CachedJob> {
    const cached = this.options.journals.take(promise);
    const { journal } = cached;
    if (task.version > 1 && journal.version !== task.version - 1) {
      cached.newestEntry = undefined;
      cached.journal = await readNewest(
        journal,
        promise.id,
        (id) => lease.get(id),
        (id, n) => lease.record(id, n),
      );
    }
    lease.journal = cached.journal;
    if (!cached.journal.run) cached.resumed ??= await this.resumption(promise, lease, log);
    return cached;
  }

  /**
   * What the first run of a job takes over from the attempt that it resumes, if any. Records once, with the job, whether it resumes
   * and why not.
   */
  async resumption(promise: PromiseRecord, lease: TaskLease, log: LineLog): Promise<Resumed | undefined> {
    const { store, namespace } = this.options;
    const { id, tags } = promise;
    const earlier = tags[RESUMES_TAG];
    if (earlier === undefined) return undefined;
    const before = await readNewest(new Journal(), earlier, (each) => lease.get(each));
    const own = store.onBehalfOf(id);
    const kept = await stepsToKeep(before.events, async (path) => {
      const awaited = own.idOf(nameIn(path));
      return awaited === undefined ? undefined : (await lease.get(awaited))?.state;
    });
    const { name } = splitKey(localId(earlier, namespace));
    const begin = async (): Promise<Resumption> => {
      if (typeof kept === "string") return { anew: `${name} ${kept}` };
      // The kept steps may hold random values of the earlier attempt.
      const ofEarlier = async () => firstSeed((await lease.get(earlier)) ?? promise, (each) => lease.get(each));
      return { from: name, seed: before.run?.seed ?? (await ofEarlier()) };
    };
    const known = await lease.get(resumptionId(id));
    const record = known ?? (await lease.create(resumptionId(id), await begin(), "resolved"));
    const told = decodeValue(record.param) as Resumption;
    const isResumed = "from" in told;
    if (!known) log.info(isResumed ? { from: told.from } : told, isResumed ? "job resumed" : "job began anew");
    if (!isResumed || typeof kept === "string") return { memo: new Map() };
    return { memo: kept, ...(before.run && { args: before.run.args }), seed: told.seed };
  }
}
