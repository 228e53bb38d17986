import { expect, test, vi } from "vitest";
import { LeaseLost } from "../../core/engine/job-lease.ts";
import { Journal } from "../../core/engine/journal.ts";
import type { Ending } from "../../core/jobs/task-feature.ts";
import { encodeValue, STARTER_TAG } from "../../core/resonate/codec.ts";
import { jobRun, jobTask } from "../../test/support/job-run.ts";
import type { ChildJobs } from "./child-jobs.ts";
import { childJobs, startsJobs } from "./task.ts";

const STORED = { state: "resolved" as const, param: {}, value: {}, tags: {}, timeoutAt: 9e12, createdAt: 0 };

/** The jobs of a worker, of which `isGivenUp` tells whether a child was given up. */
function scene({ isGivenUp = false } = {}) {
  const jobs = {
    isGivenUp: vi.fn(async () => isGivenUp),
    giveUpIfEnded: vi.fn(async () => {}),
    start: vi.fn(async (_run: unknown, { kind }: { kind: string }) => ({ id: `${kind}_1`, name: `${kind}_1` })),
  };
  const types: string[] = [];
  const ofWorker = jobs as unknown as ChildJobs;
  return {
    jobs,
    types,
    feature: childJobs(ofWorker),
    starts: startsJobs(ofWorker, async ({ type }) => void types.push(type)),
  };
}

/** A journal whose records started these jobs. */
function journalOf(names: readonly string[]): Journal {
  const journal = new Journal();
  for (const [i, value] of names.entries())
    journal.add({ ...STORED, id: `tea_1:e${i + 1}`, param: encodeValue({ kind: "start", op: `${i}`, value }) }, i + 1);
  return journal;
}

test("only a job that another job started is checked for whether it was given up", async () => {
  const { jobs, feature } = scene({ isGivenUp: true });
  const next = async (): Promise<Ending> => "complete";
  expect(await feature.task?.(jobTask(), next)).toBe("complete");
  expect(jobs.isGivenUp).not.toHaveBeenCalled();
  expect(await feature.task?.(jobTask({ promise: { tags: { [STARTER_TAG]: "cake_1" } } }), next)).toBe("left");
});

test("an execution that loses its lease gives up the jobs that it has started, in case that the job was cancelled", async () => {
  const { jobs, types, feature, starts } = scene();
  const { run } = jobRun();
  const execute = async (): Promise<Ending> => {
    await run.runtime.start({ kind: "cake" }, {}, {});
    throw new LeaseLost("the job was cancelled", { reason: "taken" });
  };
  const executing = feature.run?.(run, async () => (await starts.run?.(run, execute)) ?? "left");
  await expect(executing).rejects.toThrow(LeaseLost);
  expect(jobs.giveUpIfEnded).toHaveBeenCalledExactlyOnceWith("tea_1", ["cake_1"]);
  expect(types).toEqual(["startsJob", "startedJob"]);
});

test("a job that fails because of its deadline gives up the jobs in its journal, and after another failure it leaves them", async () => {
  const { jobs, feature } = scene();
  const { run } = jobRun({ memory: { journal: journalOf(["cake_1"]) } });
  const failing = (error: Error) => async (): Promise<Ending> => {
    run.end = { kind: "failed", error };
    return "failed";
  };
  await feature.run?.(run, failing(new Error("no water")));
  expect(jobs.giveUpIfEnded).not.toHaveBeenCalled();
  await feature.run?.(run, failing(Object.assign(new Error("too late"), { name: "DeadlineExceeded" })));
  expect(jobs.giveUpIfEnded).toHaveBeenCalledExactlyOnceWith("tea_1", ["cake_1"]);
});

test("the next run of a job gets the jobs that were not awaited, the newest hundred", async () => {
  const { feature } = scene();
  const names = Array.from({ length: 150 }, (_, i) => `cake_${i}`);
  const { run } = jobRun({ memory: { journal: journalOf(names) } });
  run.memory.journal.noteSettled({ ...STORED, id: "cake_149" });
  const next = { args: {}, version: 1, before: { emitted: 0, events: 0 }, children: [] };
  await feature.observe?.({ type: "nextRun", run, next });
  expect(next.children).toEqual(names.slice(49, 149));
  expect(run.children).toEqual(next.children);
});
