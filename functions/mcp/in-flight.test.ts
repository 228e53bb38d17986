import { expect, test } from "vitest";
import type { RequestScope } from "../../core/tools/request-scope.ts";
import { CallsInFlight } from "./in-flight.ts";

const by = (session: string | undefined) => ({ session }) as RequestScope;
const cancelled = (requestId: unknown) => ({ method: "notifications/cancelled", params: { requestId } });

test("a notification cancels the one call of its own session that has the id", () => {
  const calls = new CallsInFlight();
  const call = calls.begin(by("a"), 1);
  const bystander = calls.begin(by("b"), 1);
  calls.cancel(by("c"), cancelled(1));
  for (const other of ["1", 2, null, undefined, {}]) calls.cancel(by("a"), cancelled(other));
  for (const odd of [null, [], "text", { method: "notifications/cancelled", params: null }]) calls.cancel(by("a"), odd);
  const twin = calls.begin(by("a"), 1);
  calls.cancel(by("a"), cancelled(1));
  expect([call.signal.aborted, twin.signal.aborted]).toEqual([false, false]);
  twin.end();
  // A notification that comes after the end of its call is without effect.
  calls.cancel(by("a"), cancelled(1));
  expect([call, twin, bystander].map(({ signal }) => signal.aborted)).toEqual([true, false, false]);
});

test("without a session nothing is cancelled", () => {
  const calls = new CallsInFlight();
  const call = calls.begin(by(undefined), 1);
  const ofSession = calls.begin(by("a"), 1);
  calls.cancel(by(undefined), cancelled(1));
  expect([call.signal.aborted, ofSession.signal.aborted]).toEqual([false, false]);
});
