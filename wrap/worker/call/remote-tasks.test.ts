import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Step } from "../../../core/author/context.ts";
import { SETTLED } from "../../../core/engine/job-lease.ts";
import type { Connection } from "../connection/connection.ts";
import { AnswerLost, CallRefused, NotSent } from "../host/errors.ts";
import { requestTask, watchTask } from "./remote-tasks.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const WORKING_TASK = { status: "working" };

const MINUTE_MS = 60_000;

/**
 * Watches a task whose state is `get`, and which may be silent for five minutes; `requests` has the methods of the requests and
 * their times.
 */
function watch(get: () => Promise<Record<string, unknown>>, isReachable = () => true, timeout = 5 * MINUTE_MS) {
  const start = Date.now();
  const requests: string[] = [];
  const request = (method: string) => {
    requests.push(`${method} at ${Math.round((Date.now() - start) / 1_000)} s`);
    const leaving = Promise.withResolvers<never>();
    const result = Promise.race([method === "tasks/get" ? get() : Promise.resolve({}), leaving.promise]);
    result.catch(() => {});
    return { result, cancel() {}, leave: () => leaving.reject(new AnswerLost("nobody waits")), release() {} };
  };
  const job = new AbortController();
  const messages: unknown[] = [];
  const progress = (_done: number, _total: unknown, message: string) => void messages.push(message);
  const step = {
    signal: job.signal,
    deadline: start + 3_600_000,
    progress,
    log: { warn() {} },
  } as unknown as Step;
  const connect = async () => {
    if (!isReachable()) throw new NotSent("acme cannot be reached: ECONNREFUSED");
    return { request } as unknown as Connection;
  };
  const task = { taskId: "t", pollInterval: 30_000, session: {} };
  const outcome = watchTask(connect, step, task, new Set(), "acme", timeout).then(
    (taskOutcome) => taskOutcome,
    (error: Error) => error.message,
  );
  return { job, requests, messages, outcome };
}

test("a task that says that it works is watched for longer than the call's timeout", async () => {
  let isDone = false;
  const content = [{ type: "text", text: "done" }];
  const { requests, outcome } = watch(async () =>
    isDone ? { status: "completed", result: { content } } : WORKING_TASK,
  );
  await vi.advanceTimersByTimeAsync(20 * MINUTE_MS);
  isDone = true;
  await vi.advanceTimersByTimeAsync(MINUTE_MS);
  expect(await outcome).toEqual({ kind: "result", result: { content } });
  expect(requests.every((request) => request.startsWith("tasks/get"))).toBe(true);
});

test("a task may be silent between two polls, also if the call's timeout is shorter", async () => {
  const { job, requests } = watch(
    async () => WORKING_TASK,
    () => true,
    10_000,
  );
  await vi.advanceTimersByTimeAsync(5 * MINUTE_MS);
  expect(new Set(requests.map((request) => request.split(" ")[0]))).toEqual(new Set(["tasks/get"]));
  job.abort(SETTLED);
});

test("a task whose server cannot be reached any more fails after the call's timeout, and says why", async () => {
  const start = Date.now();
  let isReachable = true;
  const { outcome } = watch(
    async () => WORKING_TASK,
    () => isReachable,
  );
  await vi.advanceTimersByTimeAsync(10 * MINUTE_MS);
  isReachable = false;
  let finishedAt = 0;
  void outcome.then(() => (finishedAt = Date.now()));
  await vi.advanceTimersByTimeAsync(10 * MINUTE_MS);
  expect(await outcome).toBe("acme: it did not answer within 300 s (acme cannot be reached: ECONNREFUSED)");
  expect(finishedAt - start).toBeGreaterThan(14 * MINUTE_MS);
  expect(finishedAt - start).toBeLessThan(16 * MINUTE_MS);
});

test("a task continues after several outages of its server, each shorter than the call's timeout", async () => {
  const start = Date.now();
  const minute = () => (Date.now() - start) / MINUTE_MS;
  let failures = 0;
  const get = async () => {
    if (minute() > 30) return { status: "completed", result: { content: [] } };
    if (minute() % 6 < 2) return WORKING_TASK;
    failures += 1;
    throw new AnswerLost("it answered 503");
  };
  const { messages, outcome } = watch(get, () => minute() % 6 < 4);
  await vi.advanceTimersByTimeAsync(40 * MINUTE_MS);
  expect(await outcome).toEqual({ kind: "result", result: { content: [] } });
  expect(failures).toBeGreaterThan(5);
  const outage = ["it answered 503", "acme cannot be reached: ECONNREFUSED", "acme answers again"];
  expect(messages).toEqual(Array.from({ length: 5 }, () => outage).flat());
});

test("a request for the state of a task that is never answered is repeated, up to the call's timeout", async () => {
  const { requests, outcome } = watch(() => new Promise(() => {}));
  await vi.advanceTimersByTimeAsync(10 * MINUTE_MS);
  expect(await outcome).toBe("acme: it did not answer within 300 s");
  expect(requests.slice(0, 2)).toEqual(["tasks/get at 0 s", "tasks/get at 30 s"]);
  expect(requests.at(-1)).toBe("tasks/cancel at 300 s");
});

test("the end of a job cancels its task at once, even while a request for the task's state is not answered", async () => {
  const { job, requests, outcome } = watch(() => new Promise(() => {}));
  await vi.advanceTimersByTimeAsync(5_000);
  job.abort(SETTLED);
  await vi.advanceTimersByTimeAsync(0);
  expect(requests).toEqual(["tasks/get at 0 s", "tasks/cancel at 5 s"]);
  expect(await outcome).toBe("the job is no longer run here");
});

test("a task is asked for in a new session if the server has forgotten the one in which it began", async () => {
  const connectionOf = (sessionId: string) => {
    const request = (_method: string, _params: object, { session }: { session: { sessionId: string } }) => {
      const isKnown = session.sessionId === "new";
      const result = isKnown ? Promise.resolve(WORKING_TASK) : Promise.reject(new CallRefused("session", "404"));
      return { result, cancel() {}, leave() {}, release() {} };
    };
    return { session: { sessionId }, request } as unknown as Connection;
  };
  const old = connectionOf("old");
  const lost: unknown[] = [];
  const connect = async (of?: Connection) => {
    lost.push(of);
    return of ? connectionOf("new") : old;
  };
  const task = { taskId: "t", session: { sessionId: "old" } };
  expect(await requestTask(connect, "tasks/get", task)).toEqual(WORKING_TASK);
  expect(lost).toEqual([undefined, old]);
});
