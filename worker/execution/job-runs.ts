/** Prepares and executes the functions of jobs, and stores how they have ended. */
import type * as z from "zod";
import { type Implementation, type Metrics, nextArgs, storedError } from "../../core/author/index.ts";
import {
  beginRun,
  Execution,
  type ExecutionEnd,
  type JobEnd,
  type Runnable,
  type Runtime,
} from "../../core/engine/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import {
  type Ending,
  type JobCode,
  type JobMemory,
  type JobRun,
  type JobTask,
  logOf,
  type NextRun,
  type Observe,
  ownerOf,
  type RemoteStore,
  stackOf,
  wakeupOf,
} from "../../core/jobs/index.ts";
import { environmentsOf } from "./functions.ts";
import type { JournalCache } from "./journal-cache.ts";

interface JobRunsOptions {
  /** In the order in which they act around steps: the first is outermost. */
  features: readonly WorkerFeature[];
  implementations: readonly Implementation[];
  /** The variables that the implementations read. */
  env: Readonly<Record<string, string | undefined>>;
  store: RemoteStore;
  journals: JournalCache;
  observe: Observe;
}

/** What all executions of a kind of job share. */
type SharedRuntime = Pick<
  Runtime,
  "nextArgs" | "errors" | "budget" | "events" | "env" | "steps" | "metrics" | "start" | "cancel" | "endChild"
>;

const NO_METRICS: Metrics = { count() {}, observe() {} };

const noFeature = (what: string) => (): never => {
  throw new Error(`no feature of this worker ${what}`);
};

/** What a function can do only if features of its worker do it. */
const WITHOUT_FEATURES = {
  metrics: NO_METRICS,
  start: noFeature("starts jobs"),
  cancel: noFeature("cancels jobs"),
  endChild: noFeature("ends child jobs"),
};

export class JobRuns {
  readonly #options: JobRunsOptions;
  readonly #environments: ReadonlyMap<z.ZodType, unknown>;
  /** By kind. */
  readonly #shared = new Map<string, SharedRuntime>();

  /** @throws {Error} naming the variables that an implementation needs and the environment lacks */
  constructor(options: JobRunsOptions) {
    this.#options = options;
    this.#environments = environmentsOf(options.implementations, options.env);
  }

  /** Prepares an execution of a job's function, which `stop` aborts. */
  prepare(task: JobTask & { code: JobCode }, memory: JobMemory, stop: AbortController): JobRun {
    const { observe, store } = this.#options;
    const { promise, log, code } = task;
    const run: JobRun = {
      ...task,
      memory,
      stop,
      args: task.call.args[0],
      runtime: {
        ...(this.#shared.get(code.implementation.job.kind) ?? this.#share(code.implementation)),
        ...factsOf(task),
        log: logOf(log),
        promiseOf: (name) => store.onBehalfOf(promise.id).idOf(name),
        signal: stop.signal,
        onState: (state) => {
          run.state = state;
          void observe({ type: "changed", run, state });
        },
        beforeSleep: (record) => observe({ type: "sleeps", run, record }),
        onFailedAttempt: (error, failed) => void observe({ type: "attemptFailed", run, error, ...failed }),
      },
      sleep: async (ids, message) => {
        run.state = { steps: [], awaiting: ids.length, callbacks: [], questions: [], progress: { message } };
        await observe({ type: "sleeps", run });
        return run.lease.suspend(ids);
      },
      conclude: (end) => conclude(run, end, this.#options),
    };
    return run;
  }

  /** What all executions of a kind of job share: what its definition says, and what a function may use of this worker. */
  #share({ job, env }: Implementation): SharedRuntime {
    const { errors, budget, events } = job;
    const shared = {
      ...WITHOUT_FEATURES,
      nextArgs: (args: unknown) => nextArgs(job, args),
      errors,
      budget,
      events,
      env: env ? this.#environments.get(env) : {},
      steps: this.#options.features.filter(({ isFor }) => !isFor || isFor(job)),
    };
    this.#shared.set(job.kind, shared);
    return shared;
  }

  /** Executes the newest run of a job and the runs that follow it, until one does not continue as another. @throws {LeaseLost} */
  async executeAll(run: JobRun): Promise<JobEnd> {
    const { code, memory, lease, log } = run;
    for (;;) {
      const end = await executeNewest(run);
      if (end.kind !== "continued") return end;
      const { version } = code.implementation.job;
      const next: NextRun = { args: end.args, version, before: end.outputCounts, children: [] };
      await this.#options.observe({ type: "nextRun", run, next });
      memory.journal = await beginRun(memory.journal, lease, next);
      lease.journal = memory.journal;
      log.info({ run: memory.journal.run?.n }, "job continued");
    }
  }
}

/** Whether this worker has the code of a job's newest run, which may have begun with a newer version than the job. */
export const hasCodeOf = ({ memory, code }: Pick<JobRun, "memory" | "code">): boolean =>
  code.implementation.versionOf(memory.journal.run?.version ?? code.version) !== undefined;

/** Executes the newest run of a job, once. @throws {LeaseLost} */
export async function executeNewest(run: JobRun): Promise<ExecutionEnd> {
  const { memory, lease, runtime, code: of } = run;
  const { run: later } = memory.journal;
  const code: Runnable | undefined = of.implementation.versionOf(later?.version ?? of.version);
  if (!code) {
    const reason = `run ${later?.n} began with version ${later?.version}, whose code this worker lacks`;
    return { kind: "blocked", reason };
  }
  if (!later) return new Execution(code, run.args, memory.journal, lease, runtime).run();
  const own = { ...runtime, run: later, seed: later.seed, startedAt: later.startedAt };
  return new Execution(code, later.args, memory.journal, lease, own).run();
}

/** The facts about a job that its function and its steps may see. */
function factsOf({ name, promise, call }: JobTask) {
  return {
    jobName: name,
    owner: ownerOf(name, promise),
    startedAt: promise.createdAt,
    deadline: promise.timeoutAt,
    seed: call.seed,
  };
}

/** Stores how the function of a job has ended. @throws {LeaseLost} */
async function conclude(
  run: JobRun,
  end: JobEnd,
  { journals, observe }: { journals: JournalCache; observe: Observe },
): Promise<Ending> {
  run.end = end;
  switch (end.kind) {
    case "complete":
    case "failed":
      return settle(run, end, observe);
    case "asleep":
      run.memory.journal.version = run.lease.version;
      journals.put(run.promise, run.memory);
      await observe({ type: "asleep", run });
      return "asleep";
    case "blocked":
      return block(run, end.reason, observe);
  }
}

/** Settles the promise of a job. */
async function settle(
  run: JobRun,
  end: Extract<JobEnd, { kind: "complete" | "failed" }>,
  observe: Observe,
): Promise<"complete" | "failed"> {
  const { promise, lease, memory, log } = run;
  const outcome = end.kind;
  await observe({ type: "ends", task: run });
  const error = end.kind === "failed" ? storedError(end.error) : undefined;
  const storedBytes = memory.journal.storedBytes + memory.journal.outsideBytes;
  if (end.kind === "complete") await lease.fulfill("resolved", end.value, storedBytes);
  else await lease.fulfill("rejected", error, storedBytes);
  const durationMs = Date.now() - promise.createdAt;
  const reason = error?.message;
  // The stack is for the author of the function; callers get the reason only.
  const stack = end.kind === "failed" ? stackOf(end.error) : undefined;
  log.info(
    {
      outcome,
      duration_ms: durationMs,
      ...(reason !== undefined && { reason }),
      ...(stack !== undefined && { error: { stack } }),
    },
    "job done",
  );
  await observe({ type: "ended", task: run, outcome, durationMs, reason, stack });
  return outcome;
}

/** Suspends a job whose code does not fit. It is tried again from time to time: a worker with fitting code may be back. */
async function block(run: JobRun, reason: string, observe: Observe): Promise<"blocked"> {
  const { promise, lease, log } = run;
  log.warn({ reason }, "job blocked");
  await observe({ type: "blocked", task: run, reason });
  const { id, due } = wakeupOf(promise.id, Date.now());
  await lease.create(id, undefined, { due });
  if (!(await lease.suspend([id]))) log.debug("blocked job tried again at once");
  return "blocked";
}
