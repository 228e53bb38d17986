import { expect, test } from "vitest";
import type { Step } from "../../core/definitions/context.ts";
import type { CallArgs } from "../call-job.ts";
import type { Connection } from "./connection.ts";
import { Gone, NotSent } from "./errors.ts";
import { LiveCalls } from "./live.ts";
import type { Session } from "./request-state.ts";
import { Requests } from "./requests.ts";
import type { Segment } from "./segment.ts";
import type { WrappedServer } from "./wrapped-server.ts";

/** The requests of a job in front of a program, whose keeper is a new one; what becomes of each request is said. */
function before(outcomes: Error[]) {
  const sent: (string | undefined)[] = [];
  const request = (_method: string, _params: object, _exchange: object, _id: string, place: Session) => {
    sent.push(place.sessionId);
    const result = Promise.reject(outcomes.shift());
    result.catch(() => {});
    return { result, cancel() {}, leave() {}, recorded() {} };
  };
  const place = { sessionId: "new" };
  const client = { getServerCapabilities: () => ({}) };
  const connection = { request, place, keeper: "new", era: "legacy", revision: "2025-11-25", client, tools: [] };
  const calls = new LiveCalls();
  const server = {
    calls,
    options: { name: "acme" },
    place: async () => () => {},
    connection: async () => connection as unknown as Connection,
  } as unknown as WrappedServer;
  const { signal } = new AbortController();
  const args: CallArgs = { tool: "write", arguments: {}, key: "1", once: true };
  const deadline = Date.now() + 60_000;
  const requests = new Requests(server, {
    ...{ jobName: "acme.write.1", deadline, signal, args },
    answers: new Map(),
    questions: new Map(),
  });
  const step = { signal, deadline, progress() {} } as unknown as Step;
  const sending: Segment = {
    base: 0,
    request: { kind: "call" },
    sentAt: "2026-11-22T12:00:00Z",
    kept: { keeper: "old", request: "wrapped-1" },
  };
  return { calls, sent, event: () => requests.event(step, 0, sending, undefined) };
}

test("a call that another process may have sent goes to the keeper that knows it, also when that could not be reached", async () => {
  const { sent, event } = before([new NotSent("Not connected"), new Gone("the program has ended")]);
  await expect(event()).rejects.toThrow("Not connected");
  await expect(event()).rejects.toThrow(/The call was sent .* whether it had its effect is unknown/);
  expect(sent).toEqual(["old", "old"]);
});

test("a call that this process has not sent goes to the program that there is, until it is sent", async () => {
  const { calls, sent, event } = before([new NotSent("Not connected"), new NotSent("Not connected")]);
  calls.permit("acme.write.1");
  await expect(event()).rejects.toThrow("Not connected");
  await expect(event()).rejects.toThrow("Not connected");
  expect(sent).toEqual(["new", "new"]);
});
