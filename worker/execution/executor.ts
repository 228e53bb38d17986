import { REQUEST_TAG } from "../../core/author/job.ts";
import { traceIdIn } from "../../core/author/trace-context.ts";
import { machineClock } from "../../core/engine/clock.ts";
import { Execution } from "../../core/engine/execution.ts";
import type { HeldTask, TaskLease } from "../../core/engine/lease/lease.ts";
import { beginRun } from "../../core/engine/runs.ts";
import { type JobEnd, LeaseLost, type Runtime, SETTLED } from "../../core/engine/runtime.ts";
import { RecordRefused } from "../../core/engine/step-feature.ts";
import { CLEANUP_FUNCTION, STARTER, WAITS_FOR_CLEANUP_TAG } from "../../core/resonate/codec.ts";
import { isLate } from "../../core/resonate/deadline.ts";
import { localId, splitKey } from "../../core/resonate/ids.ts";
import { startedIn } from "../../features/child-jobs/child-jobs.ts";
import { CleanUp } from "../../features/clean-up/clean-up.ts";
import { suspendCrashLoop } from "../../features/crash-loop/crash-loop-pause.ts";
import { LAPSED } from "../../features/lease-check/step.ts";
import { turnOf } from "../../features/order/order.ts";
import { Reporter } from "../../features/progress/reporter.ts";
import { resumedSteps } from "../../features/resume/step.ts";
import { SettlementWatch } from "../../features/settlement-watch/settlement-watch.ts";
import { codeOfRun, type FoundCode, type FoundFunction } from "./code.ts";
import { conclude, type Ending, type JobExecution } from "./ending.ts";
import { type LineLog, reasonOf } from "./instruments.ts";
import { ENDED, JobSetup, REFUSES, type SetupOptions } from "./job-setup.ts";

/**
 * How many jobs that earlier runs started and did not await are passed on to the next run, which gives them up if the job is
 * cancelled. Further ones are cancelled when they are next executed.
 */
const MOST_CHILDREN = 100;

/** Executes the tasks of jobs, independently of each other. */
export class Executor {
  readonly #setup: JobSetup;
  readonly #cleanUp: CleanUp;

  /** @throws {Error} naming the variables that an implementation needs and the environment lacks */
  constructor(options: SetupOptions) {
    this.#setup = new JobSetup(options);
    this.#cleanUp = new CleanUp(this.#setup);
  }

  /**
   * Runs a task until its job has ended or sleeps. Its caller keeps the lease alive. Never rejects: if the job cannot go on here,
   * the server dispatches it again when the lease has lapsed. `kind` is the kind of job.
   */
  async execute(acquired: HeldTask, found: FoundCode, kind: string): Promise<void> {
    const { task, promise } = acquired;
    const { id, tags } = promise;
    const { instruments, namespace } = this.#setup.options;
    const job = localId(id, namespace);
    const request = tags[REQUEST_TAG];
    const starter = tags[STARTER];
    const isChild = starter !== undefined && splitKey(starter).name !== "";
    const parent = instruments.spanOf(promise);
    const log = this.#setup.options.log.child({
      job,
      ...(request !== undefined && { request_id: request }),
      ...(isChild && { started_by: starter }),
      ...(parent !== undefined && { trace_id: traceIdIn(parent) }),
    });
    const attributes = {
      "messaging.system": "resonate",
      "messaging.operation.type": "process",
      "messaging.operation.name": "process",
      "messaging.destination.name": tags["resonate:target"]?.split("@")[1] ?? "",
      "messaging.message.id": id,
      job,
      "task.version": task.version,
    };
    const inSpan = (work: () => Promise<Ending>) =>
      instruments.inSpan(`job ${kind}`, { attributes, kind: "consumer", parent }, work, (outcome) => ({ outcome }));
    if (found === CLEANUP_FUNCTION) return void (await inSpan(() => this.#cleanUp.run(acquired, log)));
    const lease = this.#setup.leaseOn(acquired);
    if (await this.#isPaused(lease, found.implementation.job.kind, log)) return;
    const reporter = new Reporter(this.#setup.options.store.feeds, promise, log);
    await inSpan(() => this.#untilDeadline({ acquired, found, lease, reporter, job, log }));
  }

  /** Suspends a job if it is paused; returns whether this worker is done with it. */
  async #isPaused(lease: TaskLease, kind: string, log: LineLog): Promise<boolean> {
    try {
      const isPaused = await this.#setup.options.pauses.suspendIfPaused(lease, kind);
      if (isPaused) log.info("job paused");
      return isPaused;
    } catch (error) {
      // The lease lapses, and the server dispatches the task again.
      const reason = reasonOf(error);
      log[reason.startsWith(REFUSES) ? "error" : "info"]({ reason }, "job left");
      return true;
    }
  }

  /** Runs the job's function until the deadline, unless the job has been given up. */
  async #untilDeadline(execution: Omit<JobExecution, "cached">): Promise<Ending> {
    const { acquired, found, lease, reporter, job, log } = execution;
    const { task, promise } = acquired;
    const { kind } = found.implementation.job;
    if (await this.#setup.childJobs.isGivenUp(promise)) {
      log.info({ reason: "the job that started it was cancelled" }, "job left");
      return "left";
    }
    const figures = this.#setup.options.reports?.figures;
    if (task.version === 1) figures?.count(kind, "started");
    else figures?.goesOn(job, kind);
    const stop = new AbortController();
    const cancelDeadline = machineClock.after(promise.timeoutAt - Date.now(), () => {
      log.warn("job still running at its deadline");
      stop.abort();
    });
    try {
      if (task.version === 1) {
        log.info(expectedEnd(found), "job started");
        reporter.newest = { n: 0, text: "", at: 0 };
      } else log.debug({ version: task.version }, "job continued");
      // The clean-up may undo the steps that the job would keep, so it must have ended before the earlier journal is read.
      if (await this.#waitsForCleanUp(execution)) {
        figures?.waits({ job, kind, ...reporter.waits });
        return "asleep";
      }
      const cached = await this.#setup.journalOf(acquired, lease, log);
      reporter.newest ??= cached.newestEntry;
      return await this.#executeOnce({ ...execution, cached }, stop);
    } catch (error) {
      const reason = reasonOf(error);
      const isSettled = stop.signal.reason === SETTLED;
      const isRefused = error instanceof LeaseLost && error.message.includes("answered 4");
      if (isSettled || isRefused || reason === LAPSED) this.#setup.options.instruments.leaseLost(kind);
      if (reason.startsWith(REFUSES)) {
        log.error({ reason }, "job blocked");
        figures?.waits({ job, kind, state: "blocked", says: reason });
        await reporter.blocked(reason).catch(() => {});
        return "blocked";
      }
      log.info({ reason: isSettled ? SETTLED : reason }, "job left");
      return "left";
    } finally {
      cancelDeadline();
      reporter.close();
      stop.abort(ENDED);
    }
  }

  /** One execution: replays the function over its journal, and goes on from there. @throws {LeaseLost} */
  async #executeOnce(execution: JobExecution, stop: AbortController): Promise<Ending> {
    const { acquired, found, cached, reporter } = execution;
    const { cleanup, implementation } = found;
    const { job } = implementation;
    const { task, promise } = acquired;
    const { store, watcher, reports, leaseTime: patience } = this.#setup.options;
    const isContinued = cached.journal.version === task.version - 1;
    const { concurrency, cleanupTime } = job;
    // A job that waits for its turn runs no code that could end its worker, and leaves no records, so it comes before the check.
    if (concurrency && !cached.journal.run && cached.journal.events.length === 0) {
      const end = await this.#takeTurn(execution, { limit: concurrency.limit, cleanupTime });
      if (end) return conclude(end, execution, this.#setup.options);
    }
    if (!isContinued && (await suspendCrashLoop(execution, store.feeds, reports?.figures))) return "blocked";
    const settlement = new SettlementWatch(promise, watcher, stop);
    const children: string[] = [];
    const deadline = promise.timeoutAt - cleanup;
    const watchSettlement = () => settlement.start();
    const about = { signal: stop.signal, watchSettlement, children, deadline };
    const runtime: Runtime = {
      ...this.#setup.runtime(execution, about),
      ...(cleanup > 0 && { cleanupUntil: promise.timeoutAt }),
      onState: (state) => reporter.tell(state),
      beforeSleep: () => reporter.beforeSleep({ quiet: job.expectedAt !== undefined, patience }),
    };
    try {
      const outcome = await this.#throughRuns(execution, runtime, children).catch((error): JobEnd => {
        if (error instanceof RecordRefused) return { kind: "failed", error };
        throw error;
      });
      const ending = await conclude(outcome, execution, this.#setup.options);
      if (outcome.kind === "failed" && isLate(outcome.error))
        await this.#setup.childJobs.giveUpIfEnded(promise.id, startedIn(cached.journal));
      return ending;
    } catch (error) {
      // The journal may lack the last child job, so those that this execution started are given up.
      if (error instanceof LeaseLost) await this.#setup.childJobs.giveUpIfEnded(promise.id, children);
      throw error;
    } finally {
      settlement.close();
    }
  }

  /** Executes the newest run of a job and the runs that follow it, until one does not continue as another. @throws {LeaseLost} */
  async #throughRuns(
    { found, lease, cached, log }: JobExecution,
    runtime: Runtime,
    children: string[],
  ): Promise<JobEnd> {
    const { job } = found.implementation;
    for (;;) {
      const { run } = cached.journal;
      const own = codeOfRun(cached, found);
      if (!own)
        return {
          kind: "blocked",
          reason: `run ${run?.n} began with version ${run?.version}, whose code this worker lacks`,
        };
      const steps = own.memo ? [resumedSteps(own.memo), ...runtime.steps] : runtime.steps;
      const ofRun = { ...runtime, ...own.runtime, steps };
      const outcome = await new Execution(own.code as never, own.args, cached.journal, lease, ofRun).run();
      if (outcome.kind !== "continued") return outcome;
      const { carried: before } = outcome;
      const left = [...(run?.children ?? []), ...startedIn(cached.journal)].filter((name) => {
        const id = runtime.promiseOf(name);
        return id === undefined || !cached.journal.elsewhere(id);
      });
      const next = { args: outcome.args, version: job.version, before, children: left.slice(-MOST_CHILDREN) };
      cached.journal = await beginRun(cached.journal, lease, next);
      lease.journal = cached.journal;
      cached.resumed = undefined;
      children.splice(0, children.length, ...next.children);
      log.info({ run: cached.journal.run?.n }, "job continued");
    }
  }

  /** Waits for a job's turn among the jobs with its key; undefined when it may begin. @throws {LeaseLost} */
  async #takeTurn(execution: JobExecution, terms: { limit: number; cleanupTime: number }): Promise<JobEnd | undefined> {
    const { acquired, lease } = execution;
    for (;;) {
      const ahead = await turnOf(acquired.promise, terms, lease, Date.now());
      if (ahead === "now") return undefined;
      if (ahead === "late") {
        const words = "its start took so long that later jobs have passed it: start it again";
        return { kind: "failed", error: new Error(words) };
      }
      if (await this.#suspend(execution, ahead, "waiting for its turn")) return { kind: "asleep" };
    }
  }

  /** Suspends a job until the clean-up of the cancelled attempt has ended; false if there is nothing to wait for. */
  async #waitsForCleanUp(execution: Omit<JobExecution, "cached">): Promise<boolean> {
    const { acquired, lease } = execution;
    const id = acquired.promise.tags[WAITS_FOR_CLEANUP_TAG];
    if (id === undefined || (await lease.get(id))?.state !== "pending") return false;
    return this.#suspend(execution, [id], "waiting for the clean-up of the cancelled attempt");
  }

  /** Suspends a job before its function begins, and reports why; false if it has to go on at once. */
  async #suspend(
    { lease, reporter }: Pick<JobExecution, "lease" | "reporter">,
    ids: readonly string[],
    message: string,
  ): Promise<boolean> {
    reporter.tell({ steps: [], awaiting: ids.length, callbacks: [], questions: [], progress: { message } });
    await reporter.beforeSleep({ quiet: false, patience: this.#setup.options.leaseTime });
    return lease.suspend(ids);
  }
}

/** When a job is expected to end, for the log, if its definition says so. */
function expectedEnd({ implementation: { job }, args }: FoundFunction): object {
  return job.expectedAt ? { expected_at: job.expectedAt(args) } : {};
}
