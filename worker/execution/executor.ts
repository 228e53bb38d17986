import { around } from "../../core/around.ts";
import { REQUEST_TAG } from "../../core/author/index.ts";
import { type JobEnd, type LeasedTask, LeaseLost, machineClock, RecordRefused } from "../../core/engine/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import {
  type Ending,
  type JobRun,
  type JobTask,
  type LineLog,
  type Observe,
  parentOf,
  reasonOf,
} from "../../core/jobs/index.ts";
import { localId } from "../../core/resonate/index.ts";
import type { TaskFunction } from "./functions.ts";
import type { JobRuns } from "./job-runs.ts";
import type { JournalCache } from "./journal-cache.ts";
import type { TaskLeases } from "./task-leases.ts";

interface ExecutorOptions {
  /** In the order in which they act: the first is outermost. */
  features: readonly WorkerFeature[];
  observe: Observe;
  leases: TaskLeases;
  journals: JournalCache;
  runs: JobRuns;
  namespace: string;
  log: LineLog;
}

type Execute = (task: JobTask) => Promise<Ending>;

/** Aborts what is still under way when an execution has ended. Shared, because each new error captures a stack. */
const JOB_STOPPED = new DOMException("the job is no longer run here", "AbortError");

/** Executes tasks, independently of each other. */
export class Executor {
  readonly #options: ExecutorOptions;
  /** The execution of a task with the features around it, by the kind of job; by the name of the function for a feature's own. */
  readonly #executions = new Map<string, Execute>();

  constructor(options: ExecutorOptions) {
    this.#options = options;
  }

  /**
   * Executes a task until its job has ended or sleeps. Its caller keeps the lease alive. Never rejects: if the job cannot continue
   * here, the server dispatches it again when the lease has lapsed.
   */
  async execute(claim: LeasedTask, { call, code }: TaskFunction): Promise<void> {
    const { promise } = claim;
    const kind = code?.implementation.job.kind ?? "unknown";
    const name = localId(promise.id, this.#options.namespace);
    const lease = this.#options.leases.on(claim);
    const task: JobTask = { claim, promise, call, code, kind, name, lease, log: this.#logFor(name, promise) };
    const execute = this.#executions.get(call.func) ?? this.#compose(task);
    try {
      await execute(task);
    } catch (error) {
      const isRefused = error instanceof LeaseLost && error.reason === "refused";
      task.log[isRefused ? "error" : "info"]({ reason: reasonOf(error) }, "job left");
    }
  }

  #logFor(job: string, { tags }: JobTask["promise"]): LineLog {
    const request = tags[REQUEST_TAG];
    const parent = parentOf({ tags });
    return this.#options.log.child({
      job,
      ...(request !== undefined && { request_id: request }),
      ...(parent !== undefined && { started_by: parent }),
    });
  }

  /** Puts the features of a kind of job around its execution, or those of a feature's own task. */
  #compose({ call, code }: JobTask): Execute {
    const features = this.#options.features.filter(({ isFor, functions }) => {
      if (!isFor) return true;
      return code ? isFor(code.implementation.job) : functions?.includes(call.func);
    });
    const run = around(
      features.map((feature) => feature.run),
      (run: JobRun) => this.#run(run),
    );
    const execute = around(
      features.map((feature) => feature.task),
      (task: JobTask) => this.#begin(task, run),
    );
    this.#executions.set(call.func, execute);
    return execute;
  }

  /** Reads the job's journal, and executes the job until it has ended or sleeps. */
  async #begin(task: JobTask, execute: (run: JobRun) => Promise<Ending>): Promise<Ending> {
    const { journals, runs } = this.#options;
    const { promise, code, log } = task;
    if (!code) throw new Error(`no feature of this worker executes ${task.call.func}`);
    const stop = new AbortController();
    const cancelDeadline = machineClock.after(promise.timeoutAt - Date.now(), () => {
      log.warn("job still running at its deadline");
      stop.abort();
    });
    try {
      await this.#announce(task);
      return await execute(runs.prepare({ ...task, code }, await journals.read(task), stop));
    } catch (error) {
      return await this.#leave(task, stop.signal.reason instanceof LeaseLost ? stop.signal.reason : error);
    } finally {
      cancelDeadline();
      stop.abort(JOB_STOPPED);
    }
  }

  async #announce(task: JobTask): Promise<void> {
    const { lease, call, code, log } = task;
    const { expectedAt } = code?.implementation.job ?? {};
    const isFirst = lease.version === 1;
    await this.#options.observe({ type: isFirst ? "started" : "continued", task });
    if (isFirst) log.info(expectedAt ? { expected_at: expectedAt(call.args[0]) } : {}, "job started");
    else log.debug({ version: lease.version }, "job continued");
  }

  /** Executes the job's function, and stores how it ended. @throws {LeaseLost} */
  async #run(run: JobRun): Promise<Ending> {
    const end = await this.#options.runs.executeAll(run).catch((error): JobEnd => {
      if (error instanceof RecordRefused) return { kind: "failed", error };
      throw error;
    });
    return run.conclude(end);
  }

  /** Leaves a job to another worker. */
  async #leave(task: JobTask, error: unknown): Promise<"blocked" | "left"> {
    const { observe } = this.#options;
    const reason = reasonOf(error);
    const lossReason = error instanceof LeaseLost ? error.reason : undefined;
    if (lossReason === "taken" || lossReason === "lapsed" || lossReason === "settled")
      await observe({ type: "leaseLost", task });
    if (lossReason === "refused") {
      // Any other worker would get the same answer.
      task.log.error({ reason }, "job blocked");
      await observe({ type: "blocked", task, reason });
      return "blocked";
    }
    task.log.info({ reason }, "job left");
    return "left";
  }
}
