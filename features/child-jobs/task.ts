/** Jobs that durable functions start. */
import type { Job } from "../../core/author/index.ts";
import { LeaseLost } from "../../core/engine/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { type JobRun, type NextRun, type Observe, parentOf } from "../../core/jobs/index.ts";
import { isLate } from "../../core/resonate/index.ts";
import type { ChildJobs } from "./child-jobs.ts";

/**
 * How many jobs that earlier runs started and did not await are passed on to the next run, which gives them up if the job is
 * cancelled. Further ones are cancelled when they are next executed.
 */
const MAX_CHILDREN_OF_EARLIER_RUNS = 100;

declare module "../../core/jobs/task-feature.ts" {
  interface JobRun {
    /** The names of the jobs that this execution and earlier runs started. */
    children?: string[];
  }
}

/** Gives up the children of a job that is cancelled or times out, also if its worker dies. */
export const childJobs = (jobs: ChildJobs): WorkerFeature => ({
  name: "child-jobs",
  async task({ promise, log }, next) {
    const isGivenUp = parentOf(promise) !== undefined && (await jobs.isGivenUp(promise));
    if (!isGivenUp) return next();
    log.info({ reason: "the job that started it was cancelled" }, "job left");
    return "left";
  },
  async run(run, next) {
    const { promise, memory } = run;
    const children: string[] = [];
    run.children = children;
    try {
      const ending = await next();
      if (run.end?.kind === "failed" && isLate(run.end.error))
        await jobs.giveUpIfEnded(promise.id, memory.journal.startedJobs);
      return ending;
    } catch (error) {
      // The journal may lack the last child job, so those that this execution started are given up.
      if (error instanceof LeaseLost) await jobs.giveUpIfEnded(promise.id, run.children);
      throw error;
    }
  },
  observes: ["nextRun"],
  observe(event) {
    if (event.type === "nextRun") passOnChildren(event.run, event.next);
  },
});

/** Lets a function start and cancel other jobs. */
export const startsJobs = (jobs: ChildJobs, observe: Observe): WorkerFeature => ({
  name: "child-jobs",
  run(run, next) {
    const { promise, runtime, stop } = run;
    runtime.start = async (job, args, options) => {
      await observe({ type: "startsJob", run });
      const child = await jobs.start(run, job as Job, args, options);
      void observe({ type: "startedJob", promise: child });
      if (stop.signal.aborted) await jobs.giveUpIfEnded(promise.id, [child.name]);
      run.children?.push(child.name);
      return child.name;
    };
    runtime.cancel = (name) => jobs.cancel(promise.id, name);
    return next();
  },
});

/** Passes the jobs of a run that it did not await on to the next run. */
function passOnChildren(run: JobRun, next: NextRun): void {
  const { journal } = run.memory;
  const all = [...(journal.run?.children ?? []), ...journal.startedJobs];
  const open = all.filter((name) => {
    const id = run.runtime.promiseOf(name);
    return id === undefined || !journal.settledElsewhere(id);
  });
  next.children.push(...open.slice(-MAX_CHILDREN_OF_EARLIER_RUNS));
  run.children = [...next.children];
}
