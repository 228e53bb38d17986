/** Writes the progress feeds of the jobs that this worker executes. */
import { VERSION_TAG } from "../../core/author/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { kindIn, type LineLog, type ProgressFeeds } from "../../core/jobs/index.ts";
import type { PromiseRecord } from "../../core/resonate/index.ts";
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
  log: LineLog;
  /** For how long an entry with questions is tried. */
  questionTimeoutMs: number;
}

export const progress = ({ feeds, log, questionTimeoutMs }: ProgressOptions): WorkerFeature => ({
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
      case "unhandled":
        if (!event.isFirst) return;
        return new Reporter(feeds, event.promise, log.child({ job: event.name }), false).blocked(
          lackOfCode(event.promise),
        );
      case "blocked":
        return event.task.reporter?.blocked(event.reason, event.by);
      case "ends":
        return event.task.reporter?.close();
    }
  },
});

/** Why no worker can run a job, for readers of its feed. */
function lackOfCode(promise: PromiseRecord): string {
  const version = promise.tags[VERSION_TAG];
  const what = `${kindIn(promise)}${version === undefined ? "" : `, version ${version}`}`;
  return `a worker has no code for it (${what}): its implement(…) belongs to the functions of the worker`;
}
