import { expect, test } from "vitest";
import type { Step } from "../../../core/author/context.ts";
import type { CallArgs } from "../../call-job.ts";
import type { Connection } from "../connection/connection.ts";
import { NotSent, OutcomeUnknown } from "../host/errors.ts";
import type { RequestHooks } from "../host/open-request.ts";
import type { WrappedServer } from "../wrapped-server.ts";
import type { AwaitedRequest } from "./awaited-request.ts";
import { CallRequests } from "./call-requests.ts";
import { CallsInFlight } from "./calls-in-flight.ts";
import { Slots } from "./slots.ts";

/** When the call was sent, as its job has recorded. */
const SENT_AT = "2026-11-22T12:00:00.000Z";

/** The requests of a job whose program has a new host; each request fails with one of `outcomes`. */
function requestsWith(outcomes: Error[]) {
  const hosts: (string | undefined)[] = [];
  const request = (_method: string, _params: object, { session }: RequestHooks) => {
    hosts.push(session?.sessionId);
    const result = Promise.reject(outcomes.shift());
    result.catch(() => {});
    return { result, cancel() {}, leave() {}, release() {} };
  };
  const session = { sessionId: "new" };
  const client = { getServerCapabilities: () => ({}) };
  const connection = { request, session, host: "new", era: "legacy", revision: "2025-11-25", client, tools: [] };
  const calls = new CallsInFlight();
  const server = {
    calls,
    options: { name: "acme" },
    takeSlot: async () => ({ index: 0, free() {} }),
    connection: async () => connection as unknown as Connection,
  } as unknown as WrappedServer;
  const { signal } = new AbortController();
  const args: CallArgs = { tool: "write", arguments: {}, key: "1", once: true };
  const deadline = Date.now() + 60_000;
  const requests = new CallRequests(server, {
    jobName: "acme.write.1",
    deadline,
    signal,
    args,
    answers: new Map(),
    questions: new Map(),
  });
  const step = { signal, deadline, progress() {} } as unknown as Step;
  const awaitedRequest: AwaitedRequest = {
    base: 0,
    request: { kind: "call" },
    sentAt: SENT_AT,
    hostRequest: { host: "old", request: "wrapped-1" },
  };
  return { calls, hosts, event: () => requests.event(step, 0, awaitedRequest, undefined) };
}

test("a call that another process may have sent goes only to the program host that knows it, even after that host was unreachable", async () => {
  const { hosts, event } = requestsWith([new NotSent("Not connected"), new OutcomeUnknown("the program has ended")]);
  await expect(event()).rejects.toThrow("Not connected");
  await expect(event()).rejects.toThrow(/The call was sent .* whether it had its effect is unknown/);
  expect(hosts).toEqual(["old", "old"]);
});

test("a call that no process has sent goes to the present program, until it is sent", async () => {
  const { calls, hosts, event } = requestsWith([new NotSent("Not connected"), new NotSent("Not connected")]);
  calls.permit("acme.write.1", SENT_AT);
  await expect(event()).rejects.toThrow("Not connected");
  await expect(event()).rejects.toThrow("Not connected");
  expect(hosts).toEqual(["new", "new"]);
});

test("a worker that could not record its intention to send a call does not send it after another worker has recorded its own", async () => {
  const { calls, hosts, event } = requestsWith([new OutcomeUnknown("the program has ended")]);
  let isFree = false;
  const free = () => {
    isFree = true;
  };
  calls.permit("acme.write.1", "2026-11-22T11:59:00.000Z", { index: 0, free });
  await expect(event()).rejects.toThrow(/The call was sent .* whether it had its effect is unknown/);
  expect(hosts).toEqual(["old"]);
  expect(isFree).toBe(true);
});

/** A call in flight, whose server may use `hooks`, and its slots. */
async function startCall() {
  const slots = new Slots(1);
  const result = Promise.withResolvers<object>();
  let hooks: RequestHooks = {};
  const request = (_method: string, _params: object, requestHooks: RequestHooks) => {
    hooks = requestHooks;
    return { result: result.promise, cancel() {}, leave() {}, release() {} };
  };
  const client = { getServerCapabilities: () => ({}) };
  const connection = { request, session: {}, era: "legacy", revision: "2025-11-25", client, tools: [] };
  const server = {
    calls: new CallsInFlight(),
    options: { name: "acme" },
    takeSlot: (_job: string, signal: AbortSignal) => slots.take("", signal),
    connection: async () => connection as unknown as Connection,
  } as unknown as WrappedServer;
  const execution = new AbortController();
  const { signal } = execution;
  const deadline = Date.now() + 60_000;
  const args: CallArgs = { tool: "asks", arguments: {}, key: "1", once: false };
  const job = { jobName: "acme.asks.1", deadline, signal, args, answers: new Map(), questions: new Map() };
  const step = { signal, deadline, progress() {} } as unknown as Step;
  const call = await new CallRequests(server, job).begin(step, { base: 0, request: { kind: "call" } });
  return { call, hooks, slots, execution, end: () => result.resolve({ content: [] }) };
}

test("a call that waits for an answer gets it also after the execution that made the call has ended, once it has a slot again", async () => {
  const { call, hooks, slots, execution, end } = await startCall();
  const answers: object[] = [];
  hooks.onQuestion?.({ id: 1, params: {}, answer: (answer) => answers.push(answer) });
  const other = await slots.take("", new AbortController().signal);
  execution.abort();
  expect(call.answer(0, { action: "accept" })).toBe(true);
  await new Promise(setImmediate);
  expect(answers).toEqual([]);
  other.free();
  await expect.poll(() => answers).toEqual([{ action: "accept" }]);
  end();
  await call.completion;
  await slots.take("", AbortSignal.timeout(5_000));
});

test("of a progress notification only what a job's progress feed can hold is reported", async () => {
  const { call, hooks } = await startCall();
  hooks.onProgress?.({ progress: "half", total: null, message: { text: "half" } });
  expect(call.progress).toEqual([0, undefined, undefined]);
  hooks.onProgress?.({ progress: 1, total: 2, message: "x".repeat(3_000_000) });
  expect(call.progress).toEqual([1, 2, "x".repeat(20_000)]);
});
