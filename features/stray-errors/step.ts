/**
 * Contains uncaught errors. One in the callback of a timer, for example, would end the process and every job in it. The
 * asynchronous context tells which attempt at a step caused it, so that only this attempt fails.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Log } from "../../core/author/index.ts";
import { currentPass } from "../../core/engine/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { reasonOf, stackOf } from "../../core/jobs/index.ts";

interface RunningAttempt {
  step: string;
  log: Log;
  fail(error: unknown): void;
}

/** The log of a worker, as far as it is used here. */
interface WorkerLog {
  error(fields: object, message: string): void;
  fatal(fields: object, message: string): void;
}

const attempts = new AsyncLocalStorage<RunningAttempt>();

/** An attempt fails on an uncaught error of anything that it started. */
export const strayErrors: WorkerFeature = {
  name: "stray-errors",
  attempt({ path, step }, next) {
    return new Promise((resolve, reject) => {
      attempts.run({ step: path, log: step.log, fail: reject }, next).then(resolve, reject);
    });
  },
};

/** From now on, an uncaught error ends the process only if it belongs to no attempt. */
export function containStrayErrors(log: WorkerLog): void {
  process.on("uncaughtException", (error: unknown) => {
    const attempt = attempts.getStore();
    if (!attempt) {
      log.fatal({ reason: reasonOf(error), ...withStack(error) }, "uncaught error");
      process.exit(1);
    }
    const { step } = attempt;
    attempt.log.error("uncaught error of a step", { step, reason: reasonOf(error), ...withStack(error) });
    attempt.fail(error);
  });
  // The attempt may still handle the rejection, so it does not fail.
  process.on("unhandledRejection", (reason) => {
    currentPass()?.unhandledRejection(reason);
    const attempt = attempts.getStore();
    if (attempt) attempt.log.error("unhandled rejection", { step: attempt.step, reason: reasonOf(reason) });
    else log.error({ reason: reasonOf(reason) }, "unhandled rejection");
  });
}

const withStack = (error: unknown) => {
  const stack = stackOf(error);
  return stack === undefined ? {} : { error: { stack } };
};
