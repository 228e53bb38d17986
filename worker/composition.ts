/** Puts a worker together: the worker process and the runner inside Cloudflare Workers share what is here. */
import { observedBy } from "../core/around.ts";
import type { Implementation } from "../core/author/index.ts";
import type { WorkerFeature } from "../core/feature.ts";
import { type LineLog, type Observe, RemoteStore, type WorkerStats } from "../core/jobs/index.ts";
import { type ResonateClient, ServerRules, type StoreEndpoint } from "../core/resonate/index.ts";
import { atMostOnce } from "../features/at-most-once/step.ts";
import { callbackUrls } from "../features/callbacks/callback-urls.ts";
import { callbacks } from "../features/callbacks/task.ts";
import { ChildJobs } from "../features/child-jobs/child-jobs.ts";
import { childJobs, startsJobs } from "../features/child-jobs/task.ts";
import { awaitCleanUp, cleanUpTasks } from "../features/clean-up/task.ts";
import { crashLoop } from "../features/crash-loop/task.ts";
import type { FetchPublic } from "../features/files/attempt-files.ts";
import type { FileStorage } from "../features/files/kept-files.ts";
import { stepFiles } from "../features/files/task.ts";
import { leaseCheck } from "../features/lease-check/step.ts";
import { operators } from "../features/operators/task.ts";
import { awaitTurn } from "../features/order/task.ts";
import { Pauses } from "../features/pauses/pauses.ts";
import { pausesJobs } from "../features/pauses/task.ts";
import { progress } from "../features/progress/task.ts";
import { resumeTasks } from "../features/resume/task.ts";
import { settlementWatch } from "../features/settlement-watch/task.ts";
import { Limits } from "../features/step-limits/limits.ts";
import { stepLimits } from "../features/step-limits/step.ts";
import { jobStorageLimit } from "../features/storage-limit/step.ts";
import { childStartFeatures } from "./child-start-features.ts";
import { PromiseWatcher } from "./connection/promise-watcher.ts";
import { Executor } from "./execution/executor.ts";
import { functionsOf } from "./execution/functions.ts";
import { executeNewest, hasCodeOf, JobRuns } from "./execution/job-runs.ts";
import { JournalCache } from "./execution/journal-cache.ts";
import { Heartbeat, TaskLeases } from "./execution/task-leases.ts";

interface CompositionOptions {
  client: ResonateClient;
  endpoint: StoreEndpoint;
  implementations: readonly Implementation[];
  /** The variables that the implementations and the features read. */
  env: Readonly<Record<string, string | undefined>>;
  leaseTimeMs: number;
  log: LineLog;
  /** Undefined in a deployment that keeps no files. */
  files: FileStorage | undefined;
  /** Fetches files that clients give by their address; undefined where nothing can guard against private addresses. */
  fetchPublic?: FetchPublic;
  /** What operators are told; undefined without operators. */
  stats: WorkerStats | undefined;
  /** Further features that only observe. */
  observers?: readonly WorkerFeature[];
  /** Names the trace of a job, or makes spans. */
  trace: WorkerFeature;
  /** Further features around each execution of a function, also in a clean-up. */
  inExecutions?: readonly WorkerFeature[];
  /** The span in which a function starts another job, as a `traceparent`. */
  currentSpan?: () => string | undefined;
  /** Further features around each attempt at a step. */
  aroundAttempts?: readonly WorkerFeature[];
  /** Bounds on memory, for the journals of sleeping jobs and for watched promises. */
  memory?: { journalBytes: number; promiseCharacters: number };
}

export type Composition = ReturnType<typeof compose>;

/** @throws {Error} naming the variables that an implementation needs and the environment lacks */
export function compose(options: CompositionOptions) {
  const features: WorkerFeature[] = [];
  const spine = spineOf(options, features, observedBy(features));
  features.push(...featuresOf(options, spine));
  const { leases, find, executor, heartbeat, watcher, rules, jobs, observe, pid } = spine;
  /** The versions of the kinds that it runs. */
  const kinds = Object.fromEntries(jobs.map(({ kind, version }) => [kind, version]));
  return { pid, jobs, kinds, features, observe, leases, find, executor, heartbeat, watcher, rules };
}

type Spine = ReturnType<typeof spineOf>;

/** The parts that execute tasks, with `features`, which may be added until the first task comes. */
function spineOf(options: CompositionOptions, features: readonly WorkerFeature[], observe: Observe) {
  const { client, endpoint, implementations, env, leaseTimeMs, log, stats, memory, currentSpan } = options;
  const { namespace } = endpoint;
  const jobs = implementations.map(({ job }) => job);
  const pid = crypto.randomUUID();
  const watcher = new PromiseWatcher(client, leaseTimeMs, memory?.promiseCharacters);
  const rules = new ServerRules(client, namespace);
  const heartbeat = new Heartbeat(client, pid, leaseTimeMs);
  const journals = new JournalCache(memory?.journalBytes);
  const leases = new TaskLeases({ features, client, pid, leaseTimeMs, heartbeat, journals, watcher, rules });
  const by = { key: "", requestId: "", ...(currentSpan && { traceparent: currentSpan }) };
  const store = RemoteStore.of(endpoint, jobs, childStartFeatures(jobs, stats), { by, client });
  const runs = new JobRuns({ features, implementations, env, store, journals, observe });
  const executor = new Executor({ features, observe, leases, journals, runs, namespace, log });
  const find = functionsOf(implementations, features);
  return { pid, jobs, watcher, rules, heartbeat, leases, store, runs, executor, find, observe };
}

/** The features, in the order in which they act: the first is outermost. */
function featuresOf(options: CompositionOptions, spine: Spine): WorkerFeature[] {
  const { client, endpoint, env, leaseTimeMs, log, stats, files, fetchPublic, trace } = options;
  const { namespace } = endpoint;
  const { watcher, heartbeat, leases, store, runs, find, observe } = spine;
  const { feeds } = store;
  const limits = new Limits({ client, namespace, watcher, leaseTime: leaseTimeMs });
  const children = new ChildJobs({ store, watcher, namespace });
  const callbackUrl = callbackUrls(env);
  const inExecutions: readonly WorkerFeature[] = [
    resumeTasks(namespace),
    startsJobs(children, observe),
    ...(callbackUrl ? [callbacks(callbackUrl)] : []),
    stepFiles({ storage: files, fetchPublic }),
    ...(options.inExecutions ?? []),
  ];
  return [
    // Before all that may wait for the server at an event.
    ...(stats ? [operators(stats)] : []),
    ...(options.observers ?? []),
    trace,
    // Before the features that know jobs alone: a clean-up is a task of its own.
    cleanUpTasks({
      client,
      namespace,
      observe,
      leaseOn: (task) => leases.on(task),
      find,
      prepare: (...of) => runs.prepare(...of),
      hasCodeOf,
      execute: executeNewest,
      features: inExecutions,
      endChildren: (job, lease) => children.endAllOf(job, lease),
    }),
    pausesJobs(new Pauses(client, namespace, leaseTimeMs)),
    childJobs(children),
    progress({ feeds, log, questionTimeoutMs: leaseTimeMs }),
    // Before `resumeTasks`: the clean-up may undo the steps that the job would take over.
    awaitCleanUp,
    ...inExecutions,
    // Before `crashLoop`: a job that waits for its turn runs no code that could end its worker, and leaves no records.
    awaitTurn,
    crashLoop({ feeds, observe }),
    settlementWatch(watcher),
    // What acts around steps alone. An attempt that has waited for its limits may have lost its lease meanwhile.
    stepLimits(limits.take),
    leaseCheck(heartbeat),
    // Last before the attempt: it records that the attempt begins.
    atMostOnce,
    ...(options.aroundAttempts ?? []),
    jobStorageLimit,
  ];
}
