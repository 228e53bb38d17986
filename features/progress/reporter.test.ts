import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ExecutionState } from "../../core/engine/state.ts";
import type { FeedEntry } from "../../core/jobs/feed/progress-feed.ts";
import type { ProgressFeeds } from "../../core/jobs/feed/progress-feeds.ts";
import { createLogger } from "../../worker/process/logger.ts";
import { Reporter } from "./reporter.ts";

const SECOND = 1_000;
const DAY = 86_400 * SECOND;

/** The number of entries below which the newest is found in two rounds: see `progress-feeds.ts`. */
const TWO_ROUNDS = 256;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A reporter of a job that begins now, with the entries that it writes. */
function begun() {
  const entries: FeedEntry[] = [];
  const journals = {
    newest: async () => ({ n: entries.length }),
    write: async (_id: string, _n: number, entry: FeedEntry) => entries.push(entry) > 0,
  };
  const promise = { id: "job", createdAt: Date.now(), timeoutAt: Date.now() + 400 * DAY };
  const reporter = new Reporter(journals as unknown as ProgressFeeds, promise, createLogger("silent"), true);
  return { entries, reporter };
}

const state = (more: Partial<ExecutionState>): ExecutionState => ({
  steps: [],
  awaiting: 0,
  callbacks: [],
  questions: [],
  ...more,
});

test("a job with progress every second for a week writes few enough entries for two rounds, and its last progress", async () => {
  const { entries, reporter } = begun();
  const total = (7 * DAY) / SECOND;
  for (let done = 1; done <= total; done++) {
    reporter.update(state({ progress: { done, total } }));
    // Synchronous, as 600,000 turns of the event loop take long: the entries are written after the loop, in the same order.
    vi.advanceTimersByTime(SECOND);
  }
  await vi.advanceTimersByTimeAsync(DAY);
  expect(entries.length).toBeGreaterThan(20);
  expect(entries.length).toBeLessThanOrEqual(TWO_ROUNDS - 1);
  expect(entries.at(-1)?.progress).toEqual({ done: total, total });
});

test("a step of less than a second writes no entry; a step that fails or takes longer does", async () => {
  const { entries, reporter } = begun();
  const step = (more: object) => state({ steps: [{ name: "fetch", attempt: 1, since: Date.now(), ...more }] });
  reporter.update(step({}));
  await vi.advanceTimersByTimeAsync(900);
  reporter.update(state({}));
  await vi.advanceTimersByTimeAsync(5 * SECOND);
  expect(entries).toEqual([]);
  reporter.update(step({ attempt: 2, error: "503", next: Date.now() + 8 * SECOND }));
  await vi.advanceTimersByTimeAsync(SECOND);
  expect(entries.map((entry) => entry.step?.error)).toEqual(["503"]);
  reporter.update(step({ name: "slow" }));
  await vi.advanceTimersByTimeAsync(5 * SECOND);
  expect(entries.at(-1)?.step).toEqual({ name: "slow", attempt: 1 });
});

test("a loop of sleeps writes few entries, which say until when it sleeps", async () => {
  const { entries, reporter } = begun();
  for (let n = 0; n < 2_880; n++) {
    const sleeping = state({ sleepingUntil: Date.now() + 30 * SECOND });
    reporter.update(sleeping);
    await reporter.beforeSleep(sleeping, { isQuiet: false, questionTimeoutMs: 0 });
    await vi.advanceTimersByTimeAsync(30 * SECOND);
  }
  expect(entries.length).toBeGreaterThan(20);
  expect(entries.length).toBeLessThanOrEqual(TWO_ROUNDS - 1);
  expect(entries[0]?.sleeping_until).toBeGreaterThan(0);
});

test("the reason why a job is blocked stays the newest entry, although a state was to be written later", async () => {
  const { entries, reporter } = begun();
  const step = { name: "slow", attempt: 1, since: Date.now() };
  reporter.update(state({ steps: [step] }));
  await vi.advanceTimersByTimeAsync(0.9 * SECOND);
  await reporter.blocked("its code does not fit");
  await vi.advanceTimersByTimeAsync(5 * SECOND);
  expect(entries).toEqual([{ questions: {}, blocked: "its code does not fit" }]);
});
