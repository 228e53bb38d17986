import { expect, test, vi } from "vitest";
import { VERSION_TAG } from "../../core/author/index.ts";
import { Journal } from "../../core/engine/journal.ts";
import { KIND_TAG } from "../../core/jobs/caller-record.ts";
import type { ProgressFeeds } from "../../core/jobs/feed/progress-feeds.ts";
import type { Ending, JobMemory } from "../../core/jobs/task-feature.ts";
import { jobRun, jobTask, keptLog } from "../../test/support/job-run.ts";
import { progress } from "./task.ts";

const STATE = { steps: [], awaiting: 1, callbacks: [], questions: [], progress: { message: "brewing" } };

/** Executes a job under these versions of its task, which is suspended each time. Returns how often its feed was read. */
async function readsOf(versions: readonly number[], message: (version: number) => string) {
  const newest = vi.fn(async () => ({ n: 1 }));
  const write = vi.fn(async () => true);
  const feature = progress({
    feeds: { newest, write } as unknown as ProgressFeeds,
    log: keptLog().log,
    questionTimeoutMs: 1,
  });
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

test("readers of a job that a worker has no code for are told so, once", async () => {
  const entries: unknown[] = [];
  const newest = async () => ({ n: entries.length, entry: entries.at(-1) });
  const write = async (_id: string, _n: number, entry: unknown) => entries.push(entry) > 0;
  const feeds = { newest, write } as unknown as ProgressFeeds;
  const { promise } = jobTask({
    promise: { tags: { [KIND_TAG]: "tea", [VERSION_TAG]: "2" } },
  });
  for (let restart = 0; restart < 2; restart++) {
    const feature = progress({ feeds, log: keptLog().log, questionTimeoutMs: 1 });
    await feature.observe?.({ type: "unhandled", kind: "tea", name: "tea_1", promise, isFirst: true });
    await feature.observe?.({ type: "unhandled", kind: "tea", name: "tea_1", promise, isFirst: false });
  }
  expect(entries).toEqual([{ questions: {}, blocked: expect.stringContaining("no code for it (tea, version 2)") }]);
});
