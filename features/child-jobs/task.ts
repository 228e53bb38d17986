/** Jobs that durable functions start. */
import type { Job } from "../../core/author/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { type JobRun, type NextRun, type Observe } from "../../core/jobs/index.ts";
import type { ChildJobs } from "./child-jobs.ts";

/**
 * How many jobs that earlier runs started and did not await are passed on to the next run, which ends them if the job ends
 * without a result. Further ones are cancelled when they are next executed.
 */
const MAX_CHILDREN_OF_EARLIER_RUNS = 100;

/** Ends the children of a job that ends without a result, also if its worker dies. */
export const childJobs = (jobs: ChildJobs): WorkerFeature => ({
  name: "child-jobs",
  async task({ promise, log }, next) {
    if (!(await jobs.endIfParentHas(promise))) return next();
    log.info({ reason: "the job that started it has ended without a result" }, "job left");
    return "left";
  },
  run(run, next) {
    const conclude = run.conclude.bind(run);
    // Comes first: if this process crashes before the job has failed, the next one ends the children again.
    run.conclude = async (end) => {
      if (end.kind === "failed") await jobs.endAll(run.promise.id, run.memory.journal.children);
      return conclude(end);
    };
    return next();
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
    const { promise, runtime } = run;
    runtime.start = async (job, args, options) => {
      await observe({ type: "startsJob", run });
      const child = await jobs.start(run, job as Job, args, options);
      void observe({ type: "startedJob", promise: child });
      return child.name;
    };
    runtime.cancel = (name) => jobs.cancel(promise.id, name);
    runtime.endChild = (name) => jobs.end(promise.id, name);
    return next();
  },
});

/** Passes the jobs of a run that it did not await on to the next run. */
function passOnChildren(run: JobRun, next: NextRun): void {
  const { journal } = run.memory;
  const open = journal.children.filter((name) => {
    const id = run.runtime.promiseOf(name);
    return id === undefined || !journal.settledElsewhere(id);
  });
  next.children.push(...open.slice(-MAX_CHILDREN_OF_EARLIER_RUNS));
}
