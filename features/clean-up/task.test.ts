import { expect, test, vi } from "vitest";
import { WAITS_FOR_CLEANUP_TAG } from "../../core/resonate/codec.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { jobRun } from "../../test/support/job-run.ts";
import { awaitCleanUp } from "./task.ts";

/** Executes a job after an attempt whose clean-up is in this state. */
async function executed(state: PromiseRecord["state"] | undefined) {
  const get = vi.fn(async () => ({ state }) as PromiseRecord);
  const tags = state && { [WAITS_FOR_CLEANUP_TAG]: "tea_1:x" };
  const { run, ends } = jobRun({
    promise: { tags: tags ?? {}, timeoutAt: 90_000 },
    call: { cleanup: 30_000 },
    lease: { get },
  });
  const ending = await awaitCleanUp.run?.(run, async () => "complete");
  return { ending, ends, runtime: run.runtime };
}

test("a job sleeps until the clean-up of the attempt before it has ended", async () => {
  expect(await executed("pending")).toMatchObject({ ending: "asleep", ends: [{ kind: "asleep" }] });
  expect((await executed("resolved")).ending).toBe("complete");
});

test("a job has time for a clean-up after its deadline", async () => {
  expect((await executed(undefined)).runtime).toMatchObject({ deadline: 60_000, cleanupUntil: 90_000 });
});

test("jobs that no worker cleans up after neither wait nor have that time", () => {
  const { run } = jobRun({ job: { group: "others" } });
  expect(awaitCleanUp.isFor?.(run.code.implementation.job)).toBe(false);
});
