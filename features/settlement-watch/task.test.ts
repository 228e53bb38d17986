import { expect, test, vi } from "vitest";
import type { Ending, TaskEvent } from "../../core/jobs/task-feature.ts";
import { jobRun } from "../../test/support/job-run.ts";
import { settlementWatch } from "./task.ts";

test.each<[what: string, isWatched: boolean, event: (run: ReturnType<typeof jobRun>["run"]) => TaskEvent]>([
  ["starts a job", true, (run) => ({ type: "startsJob", run })],
  [
    "tries a step again",
    true,
    (run) => ({ type: "attemptFailed", run, step: "s", error: 1, reason: "r", retryInMs: 1 }),
  ],
  ["gives a step up", false, (run) => ({ type: "attemptFailed", run, step: "s", error: 1, reason: "r" })],
])("an execution that %s watches its job: %j", async (_what, isWatched, event) => {
  const watcher = { watch: vi.fn(async () => undefined), leave: vi.fn() };
  const feature = settlementWatch(watcher);
  const { run } = jobRun();
  const execute = async (): Promise<Ending> => {
    await feature.observe?.(event(run));
    return "complete";
  };
  expect(await feature.run?.(run, execute)).toBe("complete");
  expect(watcher.watch.mock.calls.length).toBe(Number(isWatched));
  expect(watcher.leave.mock.calls.length).toBe(Number(isWatched));
});
