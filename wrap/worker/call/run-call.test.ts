import { afterEach, expect, test, vi } from "vitest";
import type { Context, Step } from "../../../core/definitions/context.ts";
import { AnswerLost } from "../connection/errors.ts";
import type { WrappedServer } from "../wrapped-server.ts";
import type { StepOutcome } from "./awaited-request.ts";
import { type CallInFlight, CallsInFlight } from "./call-in-flight.ts";
import { runCall } from "./run-call.ts";

afterEach(() => vi.useRealTimers());

test("a replay tells the program host that a call's answer is recorded, and says nothing of the call that is still under way", async () => {
  const calls = new CallsInFlight();
  const told: string[] = [];
  const request = { recorded: () => told.push("recorded") };
  calls.put("acme.read.1", { base: 1, request, ended: new Promise(() => {}) } as unknown as CallInFlight);
  const answer = Promise.withResolvers<StepOutcome>();
  const outcomes: Record<string, StepOutcome | Promise<StepOutcome>> = {
    call: { kind: "lost", why: "acme: the program has ended" },
    "call 1": answer.promise,
  };
  const step = async (name: string) => {
    told.push(name);
    return outcomes[name];
  };
  const ctx = { jobName: "acme.read.1", deadline: 0, signal: new AbortController().signal, step } as unknown as Context;
  const server = { calls, options: { name: "acme" }, forget() {} } as unknown as WrappedServer;
  const result = runCall(server, ctx, { tool: "read", arguments: {}, key: "1", once: false });
  answer.resolve({ kind: "result", result: { content: [] } });
  expect(await result).toEqual({ content: [] });
  expect(told).toEqual(["call", "call 1", "recorded"]);
});

test("a repeatable call whose connection is lost each time is repeated ten times, after pauses that grow to more than five minutes in all", async () => {
  vi.useFakeTimers();
  const sent: number[] = [];
  const request = () => {
    sent.push(Date.now());
    const result = Promise.reject(new AnswerLost("the connection to the server was lost"));
    result.catch(() => {});
    return { result, cancel() {}, leave() {}, recorded() {} };
  };
  const client = { getServerCapabilities: () => ({}) };
  const connection = { request, client, session: {}, era: "modern", revision: "2026-07-28" };
  const server = {
    calls: new CallsInFlight(),
    options: { name: "acme" },
    takeSlot: async () => ({ index: 0, free() {} }),
    forget() {},
    connection: async () => connection,
  } as unknown as WrappedServer;
  const { signal } = new AbortController();
  const deadline = Date.now() + 3_600_000;
  const names: string[] = [];
  const attempt = { signal, deadline, attempt: 1, log: {}, progress() {} } as unknown as Step;
  const step = (name: string, run: (step: Step) => unknown) => {
    names.push(name);
    return run(attempt);
  };
  const ctx = { jobName: "acme.report.1", deadline, signal, step } as unknown as Context;
  const call = runCall(server, ctx, { tool: "report", arguments: {}, key: "1", once: false });
  const ended = call.catch((error: Error) => error.message);
  await vi.advanceTimersByTimeAsync(15 * 60_000);
  expect(await ended).toBe("acme: the connection to the server was lost");
  expect(names).toEqual(["call", ...Array.from({ length: 10 }, (_, i) => `call ${i + 1}`)]);
  const pauses = sent.slice(1).map((at, i) => (at - (sent[i] ?? 0)) / 1_000);
  expect(pauses).toEqual([0, 1, 2, 4, 8, 16, 32, 64, 90, 90]);
});
