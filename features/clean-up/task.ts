/** Cleans up after cancelled jobs. Each clean-up is a task of its own, which any worker of the group takes. */
import { around } from "../../core/around.ts";
import type { Job } from "../../core/author/index.ts";
import {
  type ExecutionEnd,
  Journal,
  type LeasedTask,
  LeaseLost,
  readNewest,
  type TaskLease,
} from "../../core/engine/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import {
  type Ending,
  type JobCall,
  type JobCode,
  type JobMemory,
  type JobRun,
  type JobTask,
  type Observe,
  reasonOf,
} from "../../core/jobs/index.ts";
import {
  CLEANUP_FUNCTION,
  decodeValue,
  encodeValue,
  localId,
  type PromiseRecord,
  pause,
  type ResonateClient,
  WAITS_FOR_CLEANUP_TAG,
} from "../../core/resonate/index.ts";
import { cleanUpAfter } from "./clean-up.ts";

/** How long a clean-up waits for its creator to cancel the job before it does so itself. */
const CANCELLATION_TIMEOUT_MS = 5_000;

/** The pause between two reads of a job that is about to be cancelled. */
const READ_AGAIN_AFTER_MS = 50;

/** What clean-ups use of a worker. */
interface CleanUpOptions {
  client: Pick<ResonateClient, "call">;
  namespace: string;
  observe: Observe;
  leaseOn(task: LeasedTask): TaskLease;
  /** Finds the function of a job; undefined if this worker lacks it. */
  find(promise: PromiseRecord): { call: JobCall; code: JobCode | undefined } | undefined;
  prepare(task: JobTask & { code: JobCode }, memory: JobMemory, stop: AbortController): JobRun;
  /** Whether this worker has the code of a job's newest run, and executes it once. */
  hasCodeOf(run: JobRun): boolean;
  execute(run: JobRun): Promise<ExecutionEnd>;
  /** The features around each execution of a job's function, also in a clean-up. */
  features: readonly WorkerFeature[];
  /** Cancels the jobs that a job started to end with it; resolves with their number. */
  endChildren(job: string, lease: TaskLease): Promise<number>;
}

/** Executes the tasks that clean up after cancelled jobs. */
export function cleanUpTasks(options: CleanUpOptions): WorkerFeature {
  const { features, execute } = options;
  const cleanUpWithFeatures = around(
    features.map(({ run }) => run),
    (run: JobRun) => cleanUpAfter(run, execute),
  );
  return {
    name: "clean-up",
    functions: [CLEANUP_FUNCTION],
    isFor: () => false,
    async task(task) {
      try {
        return await executeCleanUp(task, cleanUpWithFeatures, options);
      } catch (error) {
        // The lease lapses, and another worker does the clean-up.
        task.log.info({ reason: reasonOf(error) }, "job left");
        return "left";
      }
    },
  };
}

/**
 * Lets a job wait for the clean-up of the attempt before it, which may undo the steps that the job would take over. Leaves time
 * for a clean-up after the job's own deadline.
 */
export const awaitCleanUp: WorkerFeature = {
  name: "clean-up",
  isFor: cleansUp,
  async run(run, next) {
    const { promise, call, lease, runtime } = run;
    const earlier = promise.tags[WAITS_FOR_CLEANUP_TAG];
    if (earlier !== undefined && (await lease.get(earlier))?.state === "pending") {
      const isAsleep = await run.sleep([earlier], "waiting for the clean-up of the cancelled attempt");
      if (isAsleep) return run.conclude({ kind: "asleep" });
    }
    if (call.cleanup) {
      runtime.deadline = promise.timeoutAt - call.cleanup;
      runtime.cleanupUntil = promise.timeoutAt;
    }
    return next();
  },
};

/** Whether a worker cleans up after a cancelled job. Timers, waits of the edge and jobs of foreign groups end at once. */
function cleansUp({ expectedAt, group, runs }: Job): boolean {
  return !expectedAt && group === undefined && runs !== "edge";
}

/** Cancels the child jobs of a cancelled job, and then executes its function's own clean-up. @throws {LeaseLost} */
async function executeCleanUp(
  task: JobTask,
  execute: (run: JobRun) => Promise<Ending>,
  { client, namespace, observe, leaseOn, find, prepare, hasCodeOf, endChildren }: CleanUpOptions,
): Promise<Ending> {
  const { claim, log } = task;
  const id = task.promise.tags["resonate:parent"] ?? "";
  const lease = leaseOn({ ...claim, cleansUp: id });
  const promise = await cancelledJob(id, lease, client);
  if (!promise) {
    await lease.fulfill("resolved", undefined);
    return "complete";
  }
  log.debug({ jobs: await endChildren(id, lease) }, "child jobs cancelled");
  const { func: kind = "" } = (decodeValue(promise.param) ?? {}) as Partial<JobCall>;
  const job = { promise, kind, name: localId(id, namespace) };
  const durationMs = (promise.settledAt ?? Date.now()) - promise.createdAt;
  if (lease.version === 1) await observe({ type: "ended", task: job, outcome: "cancelled", durationMs });
  const { call, code } = find(promise) ?? {};
  if (!call || !code) throw noCode();
  const memory = { journal: await readNewest(new Journal(), id, (each) => lease.get(each)) };
  lease.journal = memory.journal;
  const stop = new AbortController();
  const run = prepare({ ...task, ...job, call, code, lease }, memory, stop);
  if (!hasCodeOf(run)) throw noCode();
  return execute(run).finally(() => stop.abort());
}

const noCode = () => new LeaseLost("this worker has no code for its clean-up", { reason: "ended" });

/** The promise of a cancelled job; undefined if it ended otherwise. Cancels the job if its caller died before doing so. */
async function cancelledJob(
  id: string,
  lease: TaskLease,
  client: CleanUpOptions["client"],
): Promise<PromiseRecord | undefined> {
  const end = Date.now() + CANCELLATION_TIMEOUT_MS;
  for (;;) {
    const promise = await lease.get(id);
    if (promise?.state !== "pending") return promise?.state === "rejected_canceled" ? promise : undefined;
    if (Date.now() < end) await pause(READ_AGAIN_AFTER_MS);
    else {
      const data = { id, state: "rejected_canceled" as const, value: encodeValue(undefined) };
      await client.call({ kind: "promise.settle", data });
    }
  }
}
