import { afterEach, expect, test, vi } from "vitest";
import {
  type Context,
  DeadlineExceeded,
  HOUR,
  JobCancelled,
  type Step,
  type StepOptions,
} from "../../../core/author/context.ts";
import { AnswerLost, RpcError } from "../host/errors.ts";
import type { WrappedServer } from "../wrapped-server.ts";
import type { StepOutcome } from "./awaited-request.ts";
import type { CallInFlight } from "./call-in-flight.ts";
import { CallsInFlight } from "./calls-in-flight.ts";
import { runCall } from "./run-call.ts";

afterEach(() => vi.useRealTimers());

test("a replay releases a call's recorded answer at the program host, but not that of the call that is still under way", async () => {
  const calls = new CallsInFlight();
  const events: string[] = [];
  const request = { release: () => events.push("release") };
  calls.put("acme.read.1", {
    options: { base: 1 },
    request,
    completion: new Promise(() => {}),
  } as unknown as CallInFlight);
  const answer = Promise.withResolvers<StepOutcome>();
  const outcomes: Record<string, StepOutcome | Promise<StepOutcome>> = {
    call: { kind: "lost", why: "acme: the program has ended" },
    "call 1": answer.promise,
  };
  const step = async (name: string) => {
    events.push(name);
    return outcomes[name];
  };
  const ctx = { jobName: "acme.read.1", deadline: 0, signal: new AbortController().signal, step } as unknown as Context;
  const server = { calls, options: { name: "acme" }, forget() {} } as unknown as WrappedServer;
  const result = runCall(server, ctx, { tool: "read", arguments: {}, key: "1", once: false });
  answer.resolve({ kind: "result", result: { content: [] } });
  expect(await result).toEqual({ content: [] });
  expect(events).toEqual(["call", "call 1", "release"]);
});

/**
 * Runs a repeatable call of which each request finishes as `answer` says, for at most 15 minutes. `answers` are a person's, by the
 * names of the questions; `errors` are those of calls of the context, by their names.
 */
async function callWith(
  answer: (n: number) => Promise<object>,
  answers: Record<string, object> = {},
  errors: Record<string, Error> = {},
) {
  vi.useFakeTimers();
  const requests: { method: string; params: Record<string, unknown>; at: number }[] = [];
  const leaves: string[] = [];
  const request = (method: string, params: Record<string, unknown>) => {
    requests.push({ method, params, at: Date.now() });
    const result = answer(requests.length - 1);
    result.catch(() => {});
    return { result, cancel() {}, leave: () => leaves.push(method), release() {} };
  };
  const client = { getServerCapabilities: () => ({}) };
  const connection = { request, client, session: {}, era: "modern", revision: "2026-07-28" };
  const server = {
    calls: new CallsInFlight(),
    options: { name: "acme" },
    takeSlot: async () => ({ index: 0, free() {} }),
    forget() {},
    keepTask() {},
    connection: async () => connection,
  } as unknown as WrappedServer;
  const { signal } = new AbortController();
  const deadline = Date.now() + 3_600_000;
  const names: string[] = [];
  const retries: Record<string, unknown> = {};
  const step = async (name: string, run: (step: Step) => Promise<unknown>, { retry }: StepOptions) => {
    names.push(name);
    retries[name] = retry;
    if (errors[name]) throw errors[name];
    const attempt = (n: number) => run({ signal, deadline, attempt: n, log: {}, progress() {} } as unknown as Step);
    return name.startsWith("answer") ? attempt(1).catch(() => attempt(2)) : attempt(1);
  };
  const ask = async (name: string) => {
    names.push(name);
    if (errors[name]) throw errors[name];
    return answers[name];
  };
  const cleanup = (run: (ctx: unknown) => unknown) => run({ step });
  const ctx = { jobName: "acme.report.1", deadline, signal, step, ask, cleanup } as unknown as Context;
  const outcome = runCall(server, ctx, { tool: "report", arguments: {}, key: "1", once: false }).catch(
    (error: Error) => error.message,
  );
  await vi.advanceTimersByTimeAsync(15 * 60_000);
  return { outcome: await outcome, names, retries, requests, leaves };
}

const inputRequests = { sure: { method: "elicitation/create", params: { message: "Sure?" } } };
const yes = { action: "accept", content: { sure: true } };
const done = { content: [{ type: "text", text: "done" }] };
const loseConnection = () => Promise.reject(new AnswerLost("the connection to the server was lost"));

test("a repeatable call whose connection is lost each time is repeated ten times, after pauses that grow to more than five minutes in all", async () => {
  const { outcome, names, requests } = await callWith(loseConnection);
  expect(outcome).toBe("acme: the connection to the server was lost");
  expect(names).toEqual(["call", ...Array.from({ length: 10 }, (_, i) => `call ${i + 1}`)]);
  const pauses = requests.slice(1).map(({ at }, i) => (at - (requests[i]?.at ?? 0)) / 1_000);
  expect(pauses).toEqual([0, 1, 2, 4, 8, 16, 32, 64, 90, 90]);
});

test("a repeatable call that asked is sent again with the user's answers when its connection is lost", async () => {
  const asks = { resultType: "input_required", requestState: "half done", inputRequests };
  const { outcome, names, requests } = await callWith(
    (n) => [async () => asks, loseConnection, loseConnection, async () => done][n]?.() ?? loseConnection(),
    { "question 0 sure": yes },
  );
  expect(outcome).toEqual(done);
  expect(names).toEqual(["call", "question 0 sure", "call 1", "call 2", "call 3"]);
  const answered = { inputResponses: { sure: yes }, requestState: "half done" };
  expect(requests.slice(1).map(({ params }) => params)).toEqual(Array(3).fill(expect.objectContaining(answered)));
});

test("an answer to a task whose server cannot be reached is sent again for the call's timeout, not for as long as the task is watched", async () => {
  const task = { resultType: "task", taskId: "t" };
  const answers = [task, { status: "input_required", inputRequests }, {}, { status: "completed", result: done }];
  const { outcome, requests, retries } = await callWith(async (n) => answers[n] ?? {}, { "question 1 sure": yes });
  expect(outcome).toEqual(done);
  expect(requests.map(({ method }) => method)).toEqual(["tools/call", "tasks/get", "tasks/update", "tasks/get"]);
  expect(retries["answer 1"]).toEqual({ maxDuration: HOUR });
});

const silence = () => new Promise<never>(() => {});

test.each(["tasks/update", "tasks/cancel"])(
  "a job does not wait for a server that never answers %s, and leaves the request",
  async (method) => {
    const answers = [
      async () => ({ resultType: "task", taskId: "t" }),
      async () => ({ status: "input_required", inputRequests }),
    ];
    const errors: Record<string, Error> = method === "tasks/cancel" ? { "answer 1": new JobCancelled([]) } : {};
    const { outcome, requests, leaves } = await callWith(
      (n) => (answers[n] ?? silence)(),
      { "question 1 sure": yes },
      errors,
    );
    const attempts = requests.filter((request) => request.method === method);
    expect(attempts).not.toEqual([]);
    expect(leaves.filter((leave) => leave === method)).toHaveLength(attempts.length);
    expect(outcome).toBe(errors["answer 1"]?.message ?? "acme has not answered tasks/update in time");
  },
);

test("a task that refuses answers because it has them from an earlier attempt, which got no answer, is polled on", async () => {
  const answers = [
    async () => ({ resultType: "task", taskId: "t" }),
    async () => ({ status: "input_required", inputRequests }),
    silence,
    () => Promise.reject(new RpcError({ code: -32602, message: "the task asks nothing" })),
    async () => ({ status: "completed", result: done }),
  ];
  const { outcome, requests } = await callWith((n) => (answers[n] ?? silence)(), { "question 1 sure": yes });
  expect(outcome).toEqual(done);
  const methods = ["tools/call", "tasks/get", "tasks/update", "tasks/update", "tasks/get"];
  expect(requests.map(({ method }) => method)).toEqual(methods);
});

test("a task that refuses repeated answers and still asks gets new ones", async () => {
  const answers = [
    async () => ({ resultType: "task", taskId: "t" }),
    async () => ({ status: "input_required", inputRequests }),
    loseConnection,
    () => Promise.reject(new RpcError({ code: -32602, message: "try again" })),
    async () => ({ status: "input_required", inputRequests }),
    async () => ({}),
    async () => ({ status: "completed", result: done }),
  ];
  const answered = { "question 1 sure": yes, "question 2 sure": yes };
  const { outcome, names } = await callWith((n) => (answers[n] ?? silence)(), answered);
  expect(outcome).toEqual(done);
  expect(names.slice(1)).toEqual([
    "task 1",
    "question 1 sure",
    "answer 1",
    "task 2",
    "question 2 sure",
    "answer 2",
    "task 3",
  ]);
});

test("a task that refuses all answers to its questions fails its job with the server's reason, after it was asked three times", async () => {
  const asks = { status: "input_required", inputRequests };
  const refuses = () => Promise.reject(new RpcError({ code: -32602, message: "no such branch" }));
  const answered = Object.fromEntries([1, 2, 3, 4].map((n) => [`question ${n} sure`, yes]));
  const { outcome, names } = await callWith((n) => {
    if (n === 0) return Promise.resolve({ resultType: "task", taskId: "t" });
    // Each question is followed by two attempts to answer it.
    return n % 3 === 1 ? Promise.resolve(asks) : refuses();
  }, answered);
  expect(outcome).toBe("acme refuses the answers to its questions: no such branch");
  expect(names.filter((name) => name.startsWith("question"))).toHaveLength(3);
});

test.each([
  ["it is polled", "task 1", new JobCancelled([]), ["tools/call"]],
  ["its question is open", "question 1 sure", new DeadlineExceeded(), ["tools/call", "tasks/get"]],
  ["an answer is sent again", "answer 1", new JobCancelled([]), ["tools/call", "tasks/get"]],
])("a task is cancelled with its job, also when its job ends while %s", async (_, where, end, before) => {
  const answers = [
    { resultType: "task", taskId: "t" },
    { status: "input_required", inputRequests },
  ];
  const errors = { [where]: end };
  const { outcome, names, requests } = await callWith(
    async (n) => answers[n] ?? {},
    { "question 1 sure": yes },
    errors,
  );
  expect(outcome).toBe(end.message);
  expect(names.slice(-2)).toEqual([where, "cancel 1"]);
  expect(requests.map(({ method }) => method)).toEqual([...before, "tasks/cancel"]);
  expect(requests.at(-1)?.params).toEqual({ taskId: "t" });
});
