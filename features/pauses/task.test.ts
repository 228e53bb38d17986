import { expect, test, vi } from "vitest";
import { jobTask, keptLog } from "../../test/support/job-run.ts";
import type { Pauses } from "./pauses.ts";
import { pausesJobs } from "./task.ts";

/** Executes a job for which these pauses are found one after the other; the first suspensions come too late. */
async function executed(found: readonly (string | undefined)[], suspensions: readonly boolean[]) {
  const { lines, log } = keptLog();
  const pauses = { find: vi.fn(), forget: vi.fn() };
  for (const pause of found) pauses.find.mockResolvedValueOnce(pause);
  const suspend = vi.fn();
  for (const isSuspended of suspensions) suspend.mockResolvedValueOnce(isSuspended);
  const feature = pausesJobs(pauses as unknown as Pauses);
  const ending = await feature.task?.(jobTask({ lease: { suspend }, log }), async () => "complete");
  return { ending, lines, suspend, forget: pauses.forget };
}

test("a job that is not paused is executed", async () => {
  const { ending, suspend } = await executed([undefined], []);
  expect(ending).toBe("complete");
  expect(suspend).not.toHaveBeenCalled();
});

test("a paused job sleeps until its pause is over", async () => {
  const { ending, lines, suspend } = await executed(["pause"], [true]);
  expect(ending).toBe("asleep");
  expect(suspend).toHaveBeenCalledWith(["pause"]);
  expect(lines).toEqual([{ msg: "job paused" }]);
});

test("a pause that is over when the job is suspended is forgotten, and the next one is waited for", async () => {
  const { ending, suspend, forget } = await executed(["first", "second"], [false, true]);
  expect(ending).toBe("asleep");
  expect(suspend.mock.calls).toEqual([[["first"]], [["second"]]]);
  expect(forget).toHaveBeenCalledExactlyOnceWith("tea");
});
