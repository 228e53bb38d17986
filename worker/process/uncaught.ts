/**
 * Contains uncaught errors. One in the callback of a timer, for example, would end the process and every job in it. The
 * asynchronous context tells which attempt of a step caused it, so that only this attempt fails.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { currentPass } from "../../core/engine/guard/guard.ts";
import { type LineLog, reasonOf, stackOf } from "../../core/jobs/line-log.ts";
import type { Logger } from "./logger.ts";

interface Attempt {
  log: LineLog;
  step: string;
  fail(error: unknown): void;
}

const attempts = new AsyncLocalStorage<Attempt>();

/** Runs an attempt of a step, which fails on an uncaught error of anything that it started. */
export function contained<T>(about: Omit<Attempt, "fail">, run: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    attempts.run({ ...about, fail: reject }, run).then(resolve, reject);
  });
}

/** From now on, an uncaught error ends the process only if it belongs to no attempt. */
export function containUncaught(log: Logger): void {
  process.on("uncaughtException", (error: unknown) => {
    const attempt = attempts.getStore();
    if (!attempt) {
      log.fatal({ reason: reasonOf(error), ...withStack(error) }, "uncaught error");
      process.exit(1);
    }
    const { step } = attempt;
    attempt.log.error({ step, reason: reasonOf(error), ...withStack(error) }, "uncaught error of a step");
    attempt.fail(error);
  });
  // The attempt may still handle the rejection, so it does not fail.
  process.on("unhandledRejection", (reason) => {
    currentPass()?.unhandled(reason);
    const attempt = attempts.getStore();
    const { step, log: target }: { step?: string; log: LineLog } = attempt ?? { log };
    target.error({ ...(step !== undefined && { step }), reason: reasonOf(reason) }, "unhandled rejection");
  });
}

const withStack = (error: unknown) => {
  const stack = stackOf(error);
  return stack === undefined ? {} : { error: { stack } };
};
