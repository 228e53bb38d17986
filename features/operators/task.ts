/** Gathers what happens in a worker for operators. */
import type { ExecutionState } from "../../core/engine/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { kindIn, stackOf, type TaskEvent, type WaitState, type WorkerStats } from "../../core/jobs/index.ts";

/** Shorter sleeps are not reported. */
const MIN_SLEEP_MS = 10_000;

export const operators = (stats: WorkerStats): WorkerFeature => ({
  name: "operators",
  observe(event) {
    switch (event.type) {
      case "queued":
        stats.waiting += event.change;
        return;
      case "unhandled": {
        const { name: job, promise, isFirst } = event;
        const says = "a worker lacks its function";
        return isFirst ? stats.waits({ job, kind: kindIn(promise), state: "worker", says }) : undefined;
      }
      case "started":
        return stats.count(event.task.kind, "started");
      case "continued":
        return stats.continues(event.task.name, event.task.kind);
      case "attemptFailed":
        return addFailedAttempt(stats, event);
      case "asleep": {
        const { name: job, kind, state } = event.run;
        return stats.waits({ job, kind, ...(state && waitOf(state)) });
      }
      case "blocked": {
        const { name: job, kind } = event.task;
        return stats.waits({ job, kind, state: "blocked", says: event.reason });
      }
      case "ended": {
        const { task, outcome, durationMs, reason, stack } = event;
        return stats.ended({ job: task.name, kind: task.kind, outcome, ms: durationMs, reason, stack });
      }
    }
  },
});

function addFailedAttempt(
  stats: WorkerStats,
  { run, step, error, reason, retryInMs }: Extract<TaskEvent, { type: "attemptFailed" }>,
): void {
  const { name: job, kind } = run;
  if (retryInMs === undefined) {
    const stack = stackOf(error);
    if (stack) stats.stepFailed(job, { reason: (error as Error).message, stack });
    return;
  }
  stats.count(kind, "retried");
  stats.waits({ job, kind, state: "failing", says: `${step}: ${reason}` });
}

/** What a job waits for; without a state if it waits only briefly. */
function waitOf({ questions, steps, awaiting, callbacks, sleepingUntil }: ExecutionState): {
  state?: WaitState;
  says?: string;
} {
  const [open] = questions;
  if (open) return { state: "answer", says: open.question.message };
  const failing = steps.find(({ error }) => error !== undefined);
  if (failing) return { state: "failing", says: `${failing.name}: ${failing.error}` };
  if (awaiting + callbacks.length > 0) return { state: "job", says: callbacks.join(", ") };
  const isLong = sleepingUntil !== undefined && sleepingUntil - Date.now() >= MIN_SLEEP_MS;
  return isLong ? { state: "sleeping", says: `until ${new Date(sleepingUntil).toISOString()}` } : {};
}
