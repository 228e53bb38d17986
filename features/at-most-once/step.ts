/** Steps with `atMostOnce`: an attempt is recorded before it begins, and is not repeated if its outcome is unknown. */
import { StepInterrupted } from "../../core/author/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";

export const atMostOnce: WorkerFeature = {
  name: "at-most-once",
  stepOptions: ["atMostOnce"],
  async step(step, next) {
    if (step.begunAt !== undefined) return { error: new StepInterrupted(step.begunAt) };
    step.retry = false;
    return next();
  },
  async attempt(attempt, next) {
    await attempt.begin();
    return next();
  },
};
