import { expect, test } from "vitest";
import { activityIn, type FeedEntry } from "./progress-feed.ts";

const NOW = Date.parse("2026-11-22T12:00:00Z");
const question = { message: "Release 1.2?", requestedSchema: { type: "object" as const, properties: {} } };

test.each<[Partial<FeedEntry>, string | undefined]>([
  [{}, undefined],
  [{ step: { name: "fetch", attempt: 1 } }, "fetch runs"],
  [{ step: { name: "fetch", attempt: 4, error: "503", next: NOW + 8_000 } }, "fetch: attempt 3, 503, next in 8 s"],
  [{ step: { name: "fetch", attempt: 4, error: "503", next: NOW + 600_000 } }, "fetch: attempt 3, 503, next in 10 min"],
  [{ step: { name: "fetch", attempt: 4, error: "503", next: NOW - 1 } }, "fetch: attempt 3, 503, next in 0 s"],
  [{ step: { name: "fetch", attempt: 4, error: "503" } }, "fetch: attempt 4, 503"],
  [{ progress: { done: 7, total: 36 } }, "7 of 36"],
  [{ progress: { done: 7 } }, "7 done"],
  [{ message: "7 of 36 months", progress: { done: 7, total: 36 }, awaiting: 29 }, "7 of 36 months"],
  [{ awaiting: 29 }, "waiting for 29 jobs"],
  [{ awaiting: 1 }, "waiting for a job"],
  [{ callbacks: ["paid"] }, "waiting for paid to be called back"],
  [{ awaiting: 1, spent: { tokens: { spent: 7, limit: 9 } } }, "waiting for a job; 7 of 9 tokens spent"],
  [{ sleeping_until: NOW + 60_000 }, "sleeping until 2026-11-22T12:01:00.000Z"],
  [{ sleeping_until: NOW - 60_000 }, undefined],
  [{ blocked: 'step "a" was recorded here, step "b" came' }, 'blocked: step "a" was recorded here, step "b" came'],
  [{ questions: { go: { promiseId: "p", question } } }, "waiting for an answer: Release 1.2?"],
  [
    { message: "half done", step: { name: "fetch", attempt: 2, error: "503", next: NOW + 1_000 } },
    "half done; fetch: attempt 1, 503, next in 1 s",
  ],
])("%j reads %j", (entry, text) => {
  expect(activityIn({ questions: {}, ...entry }, NOW)).toBe(text);
});
