/** A call of a client without tasks, of a job that takes longer than a call should. */
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { JOBS } from "../../functions/jobs/index.ts";
import { RemoteStore } from "../../functions/resonate/store.ts";
import { timerTool } from "../../functions/tools/timer.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { ownGroup } from "../support/worker.ts";

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());
afterEach(() => vi.restoreAllMocks());

test("is answered, before the client gives up, with the job's name and how to collect it", async () => {
  // The one clock that cannot be set from a test; it is made to run faster.
  const waits: number[] = [];
  vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
    waits.push(ms);
    const ended = new AbortController();
    setTimeout(() => ended.abort(), ms / 50);
    return ended.signal;
  });

  const store = new RemoteStore({ ...resonate.env, ...ownGroup().env } as never, JOBS);
  const context = { store, now: Date.now(), tasks: false, signal: new AbortController().signal, inputResponses: {} };
  const answer = await timerTool.call({ timer_name: "long", seconds: 3_600 }, context);
  expect(answer).toMatchObject({
    structuredContent: {
      job_name: "timer_long",
      status: "running",
      note: expect.stringContaining('await_result(job_names: ["timer_long"])'),
    },
  });
  expect(answer).not.toHaveProperty("isError");
  // Clients give up after a minute.
  expect(Math.max(...waits)).toBe(45_000);
  expect((await store.get("timer_long"))?.state).toBe("pending");
});
