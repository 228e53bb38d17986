/** A call, from a client without tasks, that starts a job which takes longer than a call may. */

import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { endpointOf } from "../../core/resonate/connection/endpoint.ts";
import { callerJobs } from "../../core/tools/caller-jobs.ts";
import { ownGroup } from "../../testing/stack/worker-process.ts";
import { timer, timerTool } from "../../tools/timer/timer.ts";
import { jobStore } from "../support/job-store.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());
afterEach(() => vi.restoreAllMocks());

test("is answered, before the client gives up, with the job's name and how to collect it", async () => {
  // `AbortSignal.timeout` is the one clock that a test cannot set, so this one runs ten times as fast.
  const waits: number[] = [];
  vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
    waits.push(ms);
    const ended = new AbortController();
    setTimeout(() => ended.abort(), ms / 10);
    return ended.signal;
  });

  const endpoint = endpointOf({ RESONATE_URL: resonate.url, ...resonate.env, ...ownGroup().env });
  const store = jobStore(endpoint, [timer]);
  const now = Date.now();
  const { signal } = new AbortController();
  const context = {
    store,
    jobs: callerJobs(store, now, signal),
    now,
    until: now + 3_600_000,
    tasks: false,
    showsCards: false,
    asks: false,
    mayConfirm: true,
    maxWaitMs: 4_000,
    signal,
    inputResponses: {},
  };
  const answer = await timerTool.call({ timer_name: "long", seconds: 3_600 }, context);
  expect(answer).toMatchObject({
    structuredContent: {
      job_name: "timer_long",
      status: "running",
      note: expect.stringContaining('await_result(job_names: ["timer_long"])'),
    },
  });
  expect(answer).not.toHaveProperty("isError");
  // Some clients give up after 5 seconds, even if they get progress.
  expect(
    waits.some((ms) => ms > 3_000 && ms <= 4_000),
    `${waits}`,
  ).toBe(true);
  expect(Math.max(...waits)).toBeLessThan(20_000);

  // For a client that asks for progress, the call waits longer.
  waits.length = 0;
  await timerTool.call({ timer_name: "long", seconds: 3_600 }, { ...context, reportProgress: () => {} });
  expect(
    waits.some((ms) => ms > 40_000 && ms <= 45_000),
    `${waits}`,
  ).toBe(true);
  expect((await store.get("timer_long"))?.state).toBe("pending");
});
