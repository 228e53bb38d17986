import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Step } from "../../../core/definitions/context.ts";
import { SETTLED } from "../../../core/engine/runtime.ts";
import type { Connection } from "../connection/connection.ts";
import { AnswerLost } from "../connection/errors.ts";
import { watchTask } from "./remote-tasks.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const WORKING = { status: "working" };

/** Watches a task whose state is `get` for at most five minutes; `requests` has the methods of the requests and their times. */
function watched(get: () => Promise<Record<string, unknown>>) {
  const began = Date.now();
  const requests: string[] = [];
  const request = (method: string) => {
    requests.push(`${method} at ${Math.round((Date.now() - began) / 1_000)} s`);
    const left = Promise.withResolvers<never>();
    const result = Promise.race([method === "tasks/get" ? get() : Promise.resolve({}), left.promise]);
    result.catch(() => {});
    return { result, cancel() {}, leave: () => left.reject(new AnswerLost("nobody waits")), recorded() {} };
  };
  const job = new AbortController();
  const step = { signal: job.signal, deadline: began + 3_600_000, progress() {} } as unknown as Step;
  const connect = async () => ({ request }) as unknown as Connection;
  const task = { taskId: "t", every: 30_000, place: {} };
  const ended = watchTask(connect, step, task, new Set(), "acme", 5 * 60_000).then(
    (outcome) => outcome,
    (error: Error) => error.message,
  );
  return { job, requests, ended };
}

test("a task that does not end within the call's timeout is cancelled", async () => {
  const { requests, ended } = watched(async () => WORKING);
  await vi.advanceTimersByTimeAsync(10 * 60_000);
  expect(await ended).toBe("acme: it did not answer within 300 s");
  expect(requests.slice(-2)).toEqual(["tasks/get at 270 s", "tasks/cancel at 300 s"]);
});

test("a request for the state of a task that is never answered is repeated, up to the call's timeout", async () => {
  const { requests, ended } = watched(() => new Promise(() => {}));
  await vi.advanceTimersByTimeAsync(10 * 60_000);
  expect(await ended).toBe("acme: it did not answer within 300 s");
  expect(requests.slice(0, 2)).toEqual(["tasks/get at 0 s", "tasks/get at 30 s"]);
  expect(requests.at(-1)).toBe("tasks/cancel at 300 s");
});

test("the end of a job cancels its task at once, even while a request for the task's state is not answered", async () => {
  const { job, requests, ended } = watched(() => new Promise(() => {}));
  await vi.advanceTimersByTimeAsync(5_000);
  job.abort(SETTLED);
  await vi.advanceTimersByTimeAsync(0);
  expect(requests).toEqual(["tasks/get at 0 s", "tasks/cancel at 5 s"]);
  expect(await ended).toBe("the job is no longer run here");
});
