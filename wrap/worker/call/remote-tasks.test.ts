import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Step } from "../../../core/author/context.ts";
import { SETTLED } from "../../../core/engine/runtime.ts";
import type { Connection } from "../connection/connection.ts";
import { AnswerLost, NotSent } from "../connection/errors.ts";
import { watchTask } from "./remote-tasks.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const WORKING = { status: "working" };

const MINUTES = 60_000;

/**
 * Watches a task whose state is `get`, and which may be silent for five minutes; `requests` has the methods of the requests and
 * their times.
 */
function watched(get: () => Promise<Record<string, unknown>>, isReachable = () => true, timeout = 5 * MINUTES) {
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
  const told: unknown[] = [];
  const progress = (_done: number, _total: unknown, message: string) => void told.push(message);
  const step = {
    ...{ signal: job.signal, deadline: began + 3_600_000, progress },
    log: { warn() {} },
  } as unknown as Step;
  const connect = async () => {
    if (!isReachable()) throw new NotSent("acme cannot be reached: ECONNREFUSED");
    return { request } as unknown as Connection;
  };
  const task = { taskId: "t", every: 30_000, session: {} };
  const ended = watchTask(connect, step, task, new Set(), "acme", timeout).then(
    (outcome) => outcome,
    (error: Error) => error.message,
  );
  return { job, requests, told, ended };
}

test("a task that says that it works is watched for longer than the call's timeout", async () => {
  let isDone = false;
  const content = [{ type: "text", text: "done" }];
  const { requests, ended } = watched(async () => (isDone ? { status: "completed", result: { content } } : WORKING));
  await vi.advanceTimersByTimeAsync(20 * MINUTES);
  isDone = true;
  await vi.advanceTimersByTimeAsync(MINUTES);
  expect(await ended).toEqual({ kind: "result", result: { content } });
  expect(requests.every((request) => request.startsWith("tasks/get"))).toBe(true);
});

test("a task may be silent between two polls, also if the call's timeout is shorter", async () => {
  const { job, requests } = watched(
    async () => WORKING,
    () => true,
    10_000,
  );
  await vi.advanceTimersByTimeAsync(5 * MINUTES);
  expect(new Set(requests.map((request) => request.split(" ")[0]))).toEqual(new Set(["tasks/get"]));
  job.abort(SETTLED);
});

test("a task whose server can no longer be reached fails after the call's timeout, and says why", async () => {
  const began = Date.now();
  let isReachable = true;
  const { ended } = watched(
    async () => WORKING,
    () => isReachable,
  );
  await vi.advanceTimersByTimeAsync(10 * MINUTES);
  isReachable = false;
  let endedAt = 0;
  void ended.then(() => (endedAt = Date.now()));
  await vi.advanceTimersByTimeAsync(10 * MINUTES);
  expect(await ended).toBe("acme: it did not answer within 300 s (acme cannot be reached: ECONNREFUSED)");
  expect(endedAt - began).toBeGreaterThan(14 * MINUTES);
  expect(endedAt - began).toBeLessThan(16 * MINUTES);
});

test("a task goes on after several outages of its server, each shorter than the call's timeout", async () => {
  const began = Date.now();
  const minute = () => (Date.now() - began) / MINUTES;
  let lost = 0;
  const get = async () => {
    if (minute() > 30) return { status: "completed", result: { content: [] } };
    if (minute() % 6 < 2) return WORKING;
    lost += 1;
    throw new AnswerLost("it answered 503");
  };
  const { told, ended } = watched(get, () => minute() % 6 < 4);
  await vi.advanceTimersByTimeAsync(40 * MINUTES);
  expect(await ended).toEqual({ kind: "result", result: { content: [] } });
  expect(lost).toBeGreaterThan(5);
  const outage = ["it answered 503", "acme cannot be reached: ECONNREFUSED", "acme answers again"];
  expect(told).toEqual(Array.from({ length: 5 }, () => outage).flat());
});

test("a request for the state of a task that is never answered is repeated, up to the call's timeout", async () => {
  const { requests, ended } = watched(() => new Promise(() => {}));
  await vi.advanceTimersByTimeAsync(10 * MINUTES);
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
