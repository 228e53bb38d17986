/**
 * What is thrown where nothing catches it (in the callback of a timer, by a stream that nobody listens to for errors) would
 * end the process, and with it all that runs beside. It is told whose it is by the asynchronous context it came about in.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { LineLog } from "../execution/instruments.ts";
import { reasonOf, thrown } from "../execution/instruments.ts";
import type { Logger } from "./logger.ts";

interface Attempt {
  log: LineLog;
  step: string;
  /** Ends the attempt, where it has not ended. */
  fail(error: unknown): void;
}

const attempts = new AsyncLocalStorage<Attempt>();

/** Runs an attempt of a step: it fails by what anything that it began throws, and nothing catches, before it has ended. */
export function contained<T>(about: Omit<Attempt, "fail">, run: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    attempts.run({ ...about, fail: reject }, run).then(resolve, reject);
  });
}

/** From now on what nothing catches ends the process only where it is no attempt's. */
export function containUncaught(log: Logger): void {
  process.on("uncaughtException", (error: unknown) => {
    const attempt = attempts.getStore();
    if (!attempt) {
      log.fatal({ reason: reasonOf(error), ...stackOf(error) }, "uncaught error");
      process.exit(1);
    }
    const { step } = attempt;
    attempt.log.error({ step, reason: reasonOf(error), ...stackOf(error) }, "uncaught error of a step");
    attempt.fail(error);
  });
  // Whoever began it may still wait for it: it fails nothing by itself.
  process.on("unhandledRejection", (reason) => {
    const attempt = attempts.getStore();
    const { step, log: told }: { step?: string; log: LineLog } = attempt ?? { log };
    told.error({ ...(step !== undefined && { step }), reason: reasonOf(reason) }, "unhandled rejection");
  });
}

const stackOf = (error: unknown) => (error instanceof Error ? { error: thrown(error) } : {});
