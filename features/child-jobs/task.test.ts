import { expect, test, vi } from "vitest";
import { Journal } from "../../core/engine/journal.ts";
import type { Ending } from "../../core/jobs/task-feature.ts";
import { encodeValue } from "../../core/resonate/codec.ts";
import { jobRun, jobTask } from "../../test/support/job-run.ts";
import type { ChildJobs } from "./child-jobs.ts";
import { childJobs } from "./task.ts";

const STORED = { state: "resolved" as const, param: {}, value: {}, tags: {}, timeoutAt: 9e12, createdAt: 0 };

/** The jobs of a worker; `ended`: whether the parent of a child has ended without a result. */
function scene({ ended = false } = {}) {
  const jobs = { endIfParentHas: vi.fn(async () => ended), endAll: vi.fn(async () => {}) };
  return { jobs, feature: childJobs(jobs as unknown as ChildJobs) };
}

/** A journal whose records began these starts; those with a generation have ended. */
function journalOf(names: readonly string[]): Journal {
  const journal = new Journal();
  const add = (event: object) => {
    const n = journal.last + 1;
    journal.add({ ...STORED, id: `tea_1:e${n}`, param: encodeValue(event) }, n);
  };
  for (const [op, name] of names.entries()) {
    add({ kind: "begin", of: "start", op: `${op}`, at: 0, child: name.replace(/~\d+$/, "") });
    if (name.includes("~")) add({ kind: "start", op: `${op}`, value: name });
  }
  return journal;
}

test("a job whose parent has ended without a result is left", async () => {
  const next = async (): Promise<Ending> => "complete";
  expect(await scene().feature.task?.(jobTask(), next)).toBe("complete");
  expect(await scene({ ended: true }).feature.task?.(jobTask(), next)).toBe("left");
});

test("a job that fails ends its children first, also one whose start has no outcome, and one that completes leaves them", async () => {
  const { jobs, feature } = scene();
  const { run, ends } = jobRun({ memory: { journal: journalOf(["cake_1~2", "cake_2"]) } });
  jobs.endAll.mockImplementation(async () => expect(ends).toEqual([]));
  const complete = jobRun({ memory: run.memory });
  await feature.run?.(complete.run, () => complete.run.conclude({ kind: "complete", value: 1 }));
  expect(jobs.endAll).not.toHaveBeenCalled();
  const end = { kind: "failed" as const, error: new Error("no water") };
  await feature.run?.(run, () => run.conclude(end));
  expect(jobs.endAll).toHaveBeenCalledExactlyOnceWith("tea_1", ["cake_1~2", "cake_2"]);
  expect(ends).toEqual([end]);
});

test("the next run of a job gets the jobs that were not awaited, the newest hundred", async () => {
  const { feature } = scene();
  const names = Array.from({ length: 150 }, (_, i) => `cake_${i}`);
  const { run } = jobRun({ memory: { journal: journalOf(names) } });
  run.memory.journal.noteSettled({ ...STORED, id: "cake_149" });
  const next = { args: {}, version: 1, before: { emitted: 0, events: 0 }, children: [] };
  await feature.observe?.({ type: "nextRun", run, next });
  expect(next.children).toEqual(names.slice(49, 149));
});
