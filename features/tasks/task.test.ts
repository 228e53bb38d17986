import { expect, test } from "vitest";
import { withoutFeed } from "../../core/jobs/current-job.ts";
import type { DurablePromise } from "../../core/jobs/durable-promise.ts";
import { RETENTION_TAG } from "../../core/resonate/codec.ts";
import { detailedTask } from "./task.ts";

const DAY = 86_400_000;
const BEGAN = Date.parse("2026-01-01");

/** A job with a deadline after a day, which took an hour. */
const job = (keep: string | undefined) => ({
  name: "a_job",
  job: {},
  args: {},
  state: "rejected_canceled",
  createdAt: BEGAN,
  settledAt: BEGAN + 3_600_000,
  timeoutAt: BEGAN + DAY,
  record: { tags: keep === undefined ? {} : { [RETENTION_TAG]: keep } },
});

const ttl = (promise: object, retentionMs: number | undefined) =>
  detailedTask("an id", withoutFeed(promise as DurablePromise), {
    now: BEGAN,
    showsForms: false,
    retentionMs,
    page: undefined,
  }).ttlMs;

test.each([
  ["its deployment keeps jobs for a time", undefined, 10 * DAY, 10 * DAY + 3_600_000],
  ["its deployment keeps jobs forever, or for an unknown time", undefined, undefined, null],
  ["its kind is kept for less", String(DAY), 10 * DAY, DAY + 3_600_000],
  ["its kind has a retention of its own", String(DAY), undefined, DAY + 3_600_000],
  ["its kind is kept forever", "forever", 10 * DAY, null],
])("a task lives until its end, and then for its retention: %s", (_what, keep, kept, expected) => {
  expect(ttl(job(keep), kept)).toBe(expected);
});

test("a running task is expected to live until its deadline", () => {
  const underWay = { ...job(undefined), state: "pending", settledAt: undefined };
  expect(ttl(underWay, 10 * DAY)).toBe(11 * DAY);
});

test.each([
  [undefined, "Cancelled."],
  [{ state: "pending", value: undefined }, "Cancelled. It is cleaning up."],
  [{ state: "resolved", value: { steps: 2 } }, "Cancelled. It has cleaned up."],
  [{ state: "rejected", value: new Error("no") }, "Cancelled. Its clean-up has failed."],
])("a cancelled task says what its clean-up does: %j", (cleanup, message) => {
  const promise = withoutFeed({ ...job(undefined), cleanup } as unknown as DurablePromise);
  const context = { now: BEGAN, showsForms: false, retentionMs: DAY, page: undefined };
  expect(detailedTask("an id", promise, context)).toMatchObject({ status: "cancelled", statusMessage: message });
});
