/** Prepares and executes the functions of jobs. */
import type * as z from "zod";
import type { Metrics } from "../../core/author/context.ts";
import { type Implementation, nextArgs } from "../../core/author/implement.ts";
import type { Job } from "../../core/author/job.ts";
import { Execution } from "../../core/engine/execution.ts";
import { beginRun } from "../../core/engine/runs.ts";
import type { ExecutionEnd, JobEnd, Runnable, Runtime } from "../../core/engine/runtime.ts";
import type { StepFeature } from "../../core/engine/step-feature.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { ownerOf } from "../../core/jobs/durable-promise.ts";
import { logOf } from "../../core/jobs/line-log.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import type { JobCode, JobMemory, JobRun, JobTask, NextRun, Observe } from "../../core/jobs/task-feature.ts";
import { conclude } from "./conclude.ts";
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

const NO_METRICS: Metrics = { count() {}, observe() {} };

const noFeature = (what: string) => (): never => {
  throw new Error(`no feature of this worker ${what}`);
};

/** What a function can do only if features of its worker do it. */
const NOT_HERE = {
  metrics: NO_METRICS,
  start: noFeature("starts jobs"),
  cancel: noFeature("cancels jobs"),
};

export class JobRuns {
  readonly #options: JobRunsOptions;
  readonly #environments: ReadonlyMap<z.ZodType, unknown>;
  /** What features do around the steps of each kind of job. */
  readonly #steps = new Map<string, readonly StepFeature[]>();

  /** @throws {Error} naming the variables that an implementation needs and the environment lacks */
  constructor(options: JobRunsOptions) {
    this.#options = options;
    this.#environments = environmentsOf(options.implementations, options.env);
  }

  /** Prepares an execution of a job's function, which `stop` aborts. */
  prepare(task: JobTask & { code: JobCode }, memory: JobMemory, stop: AbortController): JobRun {
    const { observe } = this.#options;
    const run: JobRun = {
      ...task,
      memory,
      stop,
      args: task.call.args[0],
      runtime: {
        ...this.#servicesFor(task),
        ...factsOf(task),
        ...definitionOf(task.code.implementation.job),
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

  /** What a function may use of this worker, besides what features add. */
  #servicesFor({ promise, log, code }: JobTask & { code: JobCode }) {
    const { env } = code.implementation;
    return {
      env: env ? this.#environments.get(env) : {},
      log: logOf(log),
      promiseOf: (name: string) => this.#options.store.onBehalfOf(promise.id).idOf(name),
      steps: this.#steps.get(code.implementation.job.kind) ?? this.#stepsOf(code.implementation.job),
      ...NOT_HERE,
    };
  }

  #stepsOf(job: Job): readonly StepFeature[] {
    const steps = this.#options.features.filter(({ isFor }) => !isFor || isFor(job));
    this.#steps.set(job.kind, steps);
    return steps;
  }

  /** Executes the newest run of a job and the runs that follow it, until one does not continue as another. @throws {LeaseLost} */
  async executeAll(run: JobRun): Promise<JobEnd> {
    const { code, memory, lease, log } = run;
    for (;;) {
      const end = await executeNewest(run);
      if (end.kind !== "continued") return end;
      const { version } = code.implementation.job;
      const next: NextRun = { args: end.args, version, before: end.carried, children: [] };
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

/** What the definition of a job says about its execution. */
function definitionOf(job: Job): Pick<Runtime, "nextArgs" | "errors" | "budget" | "events"> {
  const { errors, budget, events } = job;
  return { nextArgs: (args) => nextArgs(job, args), errors, budget, events };
}
