import { expect, test } from "vitest";
import type { RequestScope } from "../../core/tools/request-scope.ts";
import { CallsInFlight } from "./in-flight.ts";

const by = (agent: string, key = "ada") => ({ client: JSON.stringify([key, agent]) }) as RequestScope;
const cancelled = (requestId: unknown) => ({ method: "notifications/cancelled", params: { requestId } });

test("a notification cancels a call only if no other matches, and never one of another caller, client or id", () => {
  const calls = new CallsInFlight();
  const call = calls.begin(by("a"), 1);
  calls.cancel(by("a", "bob"), cancelled(1));
  calls.cancel(by("b"), cancelled(1));
  for (const other of ["1", 2, null, undefined, {}]) calls.cancel(by("a"), cancelled(other));
  for (const odd of [null, [], "text", { method: "notifications/cancelled", params: null }]) calls.cancel(by("a"), odd);
  const twin = calls.begin(by("a"), 1);
  calls.cancel(by("a"), cancelled(1));
  expect([call.signal.aborted, twin.signal.aborted]).toEqual([false, false]);
  twin.end();
  calls.cancel(by("a"), cancelled(1));
  expect([call.signal.aborted, twin.signal.aborted]).toEqual([true, false]);
});
