import { expect, test } from "vitest";
import type { Context } from "../../../core/definitions/context.ts";
import type { WrappedServer } from "../wrapped-server.ts";
import type { StepOutcome } from "./awaited-request.ts";
import { type CallInFlight, CallsInFlight } from "./call-in-flight.ts";
import { runCall } from "./run-call.ts";

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
  const server = { calls, options: { name: "acme" } } as unknown as WrappedServer;
  const result = runCall(server, ctx, { tool: "read", arguments: {}, key: "1", once: false });
  answer.resolve({ kind: "result", result: { content: [] } });
  expect(await result).toEqual({ content: [] });
  expect(told).toEqual(["call", "call 1", "recorded"]);
});
