import { expect, test } from "vitest";
import type { ExecutionState } from "../../core/engine/state.ts";
import type { JobRun, TaskEvent } from "../../core/jobs/task-feature.ts";
import { WorkerStats } from "../../core/jobs/worker-stats.ts";
import { jobRun } from "../../test/support/job-run.ts";
import { operators } from "./task.ts";

const job = { job: "tea_1", kind: "tea" };
const WAITS: ExecutionState = { steps: [], awaiting: 0, callbacks: [], questions: [] };
const question = { message: "Sugar?", requestedSchema: { type: "object" as const, properties: {} } };

/** What a report says after these events of a job. */
async function newsOf(...events: ((run: JobRun) => TaskEvent)[]) {
  const stats = new WorkerStats(() => {});
  const feature = operators(stats);
  const { run } = jobRun();
  for (const event of events) await feature.observe?.(event(run));
  return stats.takeNews();
}

const asleep = (state: Partial<ExecutionState>) => (run: JobRun) =>
  ({ type: "asleep", run: { ...run, state: { ...WAITS, ...state } } }) as const;

const soon = Date.now() + 1_000;
const late = Date.now() + 60_000;

test.each<[what: string, state: Partial<ExecutionState>, says: object | undefined]>([
  ["an answer", { questions: [{ key: "q", promiseId: "p", question }] }, { state: "answer", says: "Sugar?" }],
  [
    "a step that fails",
    { steps: [{ name: "brew", attempt: 1, since: 0, error: "dry" }] },
    { state: "failing", says: "brew: dry" },
  ],
  ["another job", { awaiting: 1 }, { state: "job" }],
  ["a long sleep", { sleepingUntil: late }, { state: "sleeping", says: `until ${new Date(late).toISOString()}` }],
  ["a short sleep", { sleepingUntil: soon }, undefined],
])("operators see that a job waits for %s", async (_what, state, says) => {
  const { waits } = await newsOf(asleep(state));
  expect(waits).toMatchObject(says ? [{ ...job, ...says }] : []);
});

test("operators see how often jobs start, are tried again and end, and why one failed", async () => {
  const retried = { type: "attemptFailed", step: "brew", error: 1, reason: "dry", retryInMs: 1 } as const;
  const { counts, failed, waits } = await newsOf(
    (task) => ({ type: "started", task }),
    (run) => ({ ...retried, run }),
    (task) => ({ type: "ended", task, outcome: "failed", durationMs: 5, reason: "dry\nat the well", stack: "s" }),
  );
  expect(counts.map(([, name, n]) => [name, n])).toEqual([
    ["started", 1],
    ["retried", 1],
    ["failed", 1],
    ["ms", 5],
    ["failed: dry", 1],
  ]);
  expect(failed).toMatchObject([{ ...job, reason: "dry", stack: "s" }]);
  expect(waits).toEqual([job]);
});

test("the stack of a failed job is that of its step", async () => {
  const error = new Error("dry");
  const { failed } = await newsOf(
    (run) => ({ type: "attemptFailed", run, step: "brew", error, reason: "dry" }),
    (task) => ({ type: "ended", task, outcome: "failed", durationMs: 5, reason: "dry", stack: "of the function" }),
  );
  expect(failed[0]?.stack).toContain("task.test.ts");
});
