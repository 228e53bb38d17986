import { NondeterminismError } from "../../core/author/context.ts";
import { durationInWords, machineClock } from "../../core/engine/clock.ts";
import { Execution } from "../../core/engine/execution.ts";
import { Journal } from "../../core/engine/journal.ts";
import type { HeldTask, TaskLease } from "../../core/engine/lease/lease.ts";
import { readNewest } from "../../core/engine/runs.ts";
import { LeaseLost } from "../../core/engine/runtime.ts";
import { RecordRefused } from "../../core/engine/step-feature.ts";
import { decodeValue, encodeValue } from "../../core/resonate/codec.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { localId } from "../../core/resonate/ids.ts";
import { pause } from "../../core/resonate/pacing/backoff.ts";
import { codeFor, codeOfRun, type FoundFunction } from "../../worker/execution/code.ts";
import type { Ending } from "../../worker/execution/ending.ts";
import { type LineLog, reasonOf } from "../../worker/execution/instruments.ts";
import { ENDED, type JobSetup } from "../../worker/execution/job-setup.ts";

/** How long a clean-up waits for its creator to cancel the job before it does so itself, in milliseconds. */
const TIME_TO_CANCEL = 5_000;

/** Cleans up after cancelled jobs. Each clean-up is a task of its own. */
export class CleanUp {
  readonly #setup: JobSetup;

  constructor(setup: JobSetup) {
    this.#setup = setup;
  }

  /** Runs the task that cleans up after a cancelled job: gives up its child jobs, then runs its function's own clean-up. */
  async run(acquired: HeldTask, log: LineLog): Promise<Ending> {
    const { task, promise } = acquired;
    const id = promise.tags["resonate:parent"] ?? "";
    const { implementations, namespace, reports } = this.#setup.options;
    try {
      const lease = this.#setup.leaseOn({ ...acquired, cleansUp: id });
      const job = await this.#cancelled(id, lease);
      if (!job) {
        await lease.fulfill("resolved", undefined);
        return "complete";
      }
      const jobs = await this.#setup.childJobs.giveUpAll(id, lease);
      log.debug({ jobs }, "child jobs given up");
      const found = codeFor(job, implementations);
      const { func: kind = "" } = (decodeValue(job.param) ?? {}) as { func?: string };
      const ended = { job: localId(id, namespace), kind, ms: (job.settledAt ?? Date.now()) - job.createdAt };
      if (task.version === 1) reports?.figures.ended({ ...ended, outcome: "cancelled" });
      if (typeof found !== "object") throw new LeaseLost("this worker has no code for its clean-up");
      return await this.#undo({ task, promise: job }, lease, found, log);
    } catch (error) {
      // The lease lapses, and another worker does the clean-up.
      log.info({ reason: reasonOf(error) }, "job left");
      return "left";
    }
  }

  async #cleaned(lease: TaskLease, steps: number, stored?: number): Promise<Ending> {
    await lease.fulfill("resolved", { steps }, stored);
    return "complete";
  }

  /** The promise of a cancelled job; undefined if it ended otherwise. Cancels the job if its caller died before doing so. */
  async #cancelled(id: string, lease: TaskLease): Promise<PromiseRecord | undefined> {
    const end = Date.now() + TIME_TO_CANCEL;
    for (;;) {
      const promise = await lease.get(id);
      if (promise?.state !== "pending") return promise?.state === "rejected_canceled" ? promise : undefined;
      if (Date.now() < end) await pause(50);
      else {
        const data = { id, state: "rejected_canceled" as const, value: encodeValue(undefined) };
        await this.#setup.options.client.call({ kind: "promise.settle", data });
      }
    }
  }

  /** One execution of a cancelled job's clean-up: its function goes on from the command that throws the cancellation. */
  async #undo(acquired: HeldTask, lease: TaskLease, found: FoundFunction, log: LineLog): Promise<Ending> {
    const { cleanup, implementation } = found;
    const { promise } = acquired;
    const journal = await readNewest(new Journal(), promise.id, (each) => lease.get(each));
    const { run } = journal;
    lease.journal = journal;
    const resumed = run ? undefined : await this.#setup.resumption(promise, lease, log);
    const cached = { journal, newestEntry: undefined, resumed };
    const own = codeOfRun(cached, found);
    if (!own) throw new LeaseLost("this worker has no code for its clean-up");
    const time = implementation.job.cleanupTime;
    const told = () => journal.events.find(({ event }) => event.kind === "cancelled");
    // A job that cannot end before its deadline may have been told of it long before it was cancelled.
    const until = Math.max(told()?.promise.createdAt ?? Date.now(), promise.settledAt ?? 0) + time;
    const overdue = new Error(`it did not end within ${durationInWords(time)}`);
    const stop = new AbortController();
    const cancelTimer = machineClock.after(until - Date.now(), () => stop.abort(overdue));
    const job = localId(promise.id, this.#setup.options.namespace);
    const about = { signal: stop.signal, watchSettlement: () => {}, children: [], deadline: until };
    const runtime = this.#setup.runtime({ acquired, found, cached, job, log }, about);
    const cancelled = { at: promise.settledAt ?? Date.now(), deadline: promise.timeoutAt - cleanup };
    try {
      if (!told()) log.info({ cleans_up: job }, "clean-up started");
      const inIt = { ...runtime, ...own.runtime, cancelled };
      const outcome = await new Execution(own.code as never, own.args, journal, lease, inIt).run();
      if (outcome.kind === "asleep") return "asleep";
      const { n = 0 } = told() ?? {};
      const after = journal.events.filter((each) => each.n > n);
      const lost = after.find(({ event }) => (event.kind === "step" || event.kind === "start") && event.error);
      const broken =
        outcome.kind === "failed" && outcome.error instanceof NondeterminismError ? outcome.error : undefined;
      const reason =
        outcome.kind === "blocked"
          ? outcome.reason
          : (broken?.message ?? (lost && "error" in lost.event ? lost.event.error?.message : undefined));
      if (reason !== undefined) return await this.#cleanUpFailed(lease, journal, reason, log);
      log.info({ cleans_up: job, records: after.length }, "clean-up done");
      return await this.#cleaned(lease, after.length, journal.stored + journal.files);
    } catch (error) {
      const reason = error instanceof RecordRefused ? error : overdue;
      if (reason === overdue && stop.signal.reason !== overdue) throw error;
      return await this.#cleanUpFailed(lease, journal, reason.message, log);
    } finally {
      cancelTimer();
      stop.abort(ENDED);
    }
  }

  async #cleanUpFailed(lease: TaskLease, { stored, files }: Journal, reason: string, log: LineLog): Promise<Ending> {
    log.error({ reason }, "clean-up failed");
    const error = new Error(reason);
    Object.defineProperty(error, "stack", { value: undefined });
    await lease.fulfill("rejected", error, stored + files);
    return "failed";
  }
}
