/** What the steps of jobs use of a worker. */
import { LeaseLost } from "../core/engine/runtime.ts";
import type { WorkerFeature } from "../core/feature.ts";
import { type LineLog, reasonOf } from "../core/jobs/line-log.ts";
import type { JobRun, Observe } from "../core/jobs/task-feature.ts";
import { attemptFiles, type FetchPublic } from "../features/files/attempt-files.ts";
import type { KeptFiles } from "../features/files/kept-files.ts";
import type { Limits } from "../features/step-limits/limits.ts";
import type { Heartbeat } from "./execution/heartbeat.ts";

/** Runs an attempt of a step. An uncaught error of the attempt fails only this attempt. */
export type RunAttempt = <Result>(
  about: { log: LineLog; step: string; attempt: number },
  run: () => Promise<Result>,
) => Promise<Result>;

interface StepServices {
  files: KeptFiles | undefined;
  /** Fetches files that clients give by their address; undefined where nothing can guard against private addresses. */
  fetchPublic: FetchPublic | undefined;
  limits: Limits;
  heartbeat: Heartbeat;
  observe: Observe;
  runAttempt: RunAttempt;
}

export function stepServices(services: StepServices): WorkerFeature {
  const { files, fetchPublic, limits, heartbeat, observe, runAttempt } = services;
  return {
    name: "steps",
    run(run: JobRun, next) {
      const { runtime, call, memory, claim, log } = run;
      const room = { taken: memory.journal.files, most: call.storage || Number.POSITIVE_INFINITY };
      runtime.files = (of) => attemptFiles(files, { ...of, room }, fetchPublic);
      runtime.limit = (limit, signal) => limits.take(limit, runtime.owner ?? "", signal);
      runtime.beforeAttempt = async () => {
        const isOurs = await heartbeat.isOurs(claim.task).catch((error) => {
          throw new LeaseLost(reasonOf(error), { reason: "unreachable", cause: error });
        });
        // Another worker may have the job by now, and the work would be done twice.
        if (!isOurs) throw new LeaseLost("its lease had lapsed", { reason: "lapsed" });
      };
      runtime.onFailure = (error, { step, reason, retry_in_ms: retryInMs }) =>
        void observe({ type: "attemptFailed", run, step, error, reason, retryInMs });
      runtime.runAttempt = (step, attempt, work) => runAttempt({ log, step, attempt }, work);
      return next();
    },
  };
}
