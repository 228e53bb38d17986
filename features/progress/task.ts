/** Writes the progress feeds of the jobs that this worker executes. */
import type { WorkerFeature } from "../../core/feature.ts";
import type { ProgressFeeds } from "../../core/jobs/index.ts";
import { type LastEntry, Reporter } from "./reporter.ts";

declare module "../../core/jobs/task-feature.ts" {
  interface JobTask {
    reporter?: Reporter;
  }
  interface JobMemory {
    /** The newest entry of the feed, as of the execution under this version of the job's task. */
    lastEntry?: { entry: LastEntry; version: number } | undefined;
  }
}

interface ProgressOptions {
  feeds: ProgressFeeds;
  /** For how long an entry with questions is tried. */
  questionTimeoutMs: number;
}

export const progress = ({ feeds, questionTimeoutMs }: ProgressOptions): WorkerFeature => ({
  name: "progress",
  async task(task, next) {
    const reporter = new Reporter(feeds, task.promise, task.log, task.lease.version === 1);
    task.reporter = reporter;
    try {
      return await next();
    } finally {
      reporter.close();
    }
  },
  run({ reporter, memory, lease }, next) {
    const { entry, version } = memory.lastEntry ?? {};
    if (reporter && version === lease.version - 1) reporter.last ??= entry;
    return next();
  },
  async observe(event) {
    switch (event.type) {
      case "changed":
        return event.run.reporter?.update(event.state);
      case "sleeps": {
        const { reporter, state, code } = event.run;
        const isQuiet = code.implementation.job.expectedAt !== undefined;
        return state && reporter?.beforeSleep(state, { isQuiet, questionTimeoutMs });
      }
      case "asleep": {
        const { reporter, memory, lease } = event.run;
        const entry = reporter?.last;
        memory.lastEntry = entry && { entry, version: lease.version };
        return;
      }
      case "blocked":
        return event.task.reporter?.blocked(event.reason, event.by);
      case "ends":
        return event.task.reporter?.close();
    }
  },
});
