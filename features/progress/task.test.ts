import { expect, test, vi } from "vitest";
import { Journal } from "../../core/engine/journal.ts";
import type { ProgressFeeds } from "../../core/jobs/feed/progress-feeds.ts";
import type { Ending, JobMemory } from "../../core/jobs/task-feature.ts";
import { jobRun } from "../../test/support/job-run.ts";
import { progress } from "./task.ts";

const STATE = { steps: [], awaiting: 1, callbacks: [], questions: [], progress: { message: "brewing" } };

/** Executes a job under these versions of its task, which is suspended each time. Returns how often its feed was read. */
async function readsOf(versions: readonly number[], message: (version: number) => string) {
  const newest = vi.fn(async () => ({ n: 1 }));
  const write = vi.fn(async () => true);
  const feature = progress({ feeds: { newest, write } as unknown as ProgressFeeds, questionTimeoutMs: 1 });
  const memory: JobMemory = { journal: new Journal() };
  for (const version of versions) {
    const { run } = jobRun({ version, memory });
    const execute = async (): Promise<Ending> => {
      run.state = { ...STATE, progress: { message: message(version) } };
      await feature.observe?.({ type: "sleeps", run });
      await feature.observe?.({ type: "asleep", run });
      return "asleep";
    };
    await feature.task?.(run, async () => (await feature.run?.(run, execute)) ?? "left");
  }
  return { reads: newest.mock.calls.length, writes: write.mock.calls.length };
}

test("a worker that executes a job again and again writes its entries without reading the feed", async () => {
  expect(await readsOf([1, 2, 3], (version) => `${version}`)).toEqual({ reads: 0, writes: 3 });
});

test("an entry that stands already is not written again", async () => {
  expect(await readsOf([1, 2, 3], () => "brewing")).toEqual({ reads: 0, writes: 1 });
});

test("a worker reads the feed of a job that another worker has executed since", async () => {
  expect(await readsOf([1, 3], (version) => `${version}`)).toEqual({ reads: 1, writes: 2 });
});
