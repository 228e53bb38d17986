/** One caller's backlog, in the worker and in front of the archive, does not delay another caller's single job. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../../testing/stack/program.ts";
import { bearerBindings, callerAt, type TestCaller } from "../../auth/support.ts";
import { isRunner } from "../../support/account.ts";
import { TASKS } from "../../support/rpc.ts";
import { type Stack, startStack } from "../../support/stack.ts";
import { tasksAt } from "../../tasks/support.ts";

/** The number of months in the range, of slots, and of requests at once. */
const MONTHS = 240;
const SLOTS = 8;
const REQUESTS = isRunner ? 8 : 2;

/**
 * The largest number of her months that may be requested before his, and the time that the archive takes for each, in
 * milliseconds. There are eight runners with 50 slots each, which compete for the requests as workers do: callers take turns
 * within each runner.
 */
const AHEAD = isRunner ? MONTHS / 2 : 4 * SLOTS;
const SLOW = isRunner ? 500 : 50;

let stack: Stack;
let ada: TestCaller;
let bob: TestCaller;
beforeAll(async () => {
  stack = await startStack({
    bindings: { ...bearerBindings({ ada: "static-token-of-ada", bob: "static-token-of-bob" }), MAX_JOBS: "0" },
    env: { MAX_TASKS: String(SLOTS), UPSTREAM_CONCURRENCY: String(REQUESTS) },
  });
  ada = callerAt(stack.url, "static-token-of-ada");
  bob = callerAt(stack.url, "static-token-of-bob");
});
afterAll(() => stack?.[Symbol.asyncDispose]());

test("a month is fetched soon although another caller's 240 months are waiting", async () => {
  const log = () => stack.archive.control.requests.log;
  stack.archive.control.inject({ fault: { kind: "slow", ms: SLOW } });
  const range = { latitude: 47.6, longitude: -122.3, from: "1990-01", to: "2009-12", confirm: true };
  const asked = tasksAt(stack.url, "static-token-of-ada", TASKS).call("weather_range", range);
  await until("her months to be asked for", () => log().length >= 4 * SLOTS, 60_000);
  const before = log().length;
  const month = await bob.call("weather_data", { latitude: 47.7, longitude: -122.3, year: 2014, month: 7 });
  expect(month.status).toBe("complete");
  const at = log().findIndex(({ query }) => query.includes("latitude=47.7"));
  // His month waits only for those of hers that already have a slot or a request, not for all that came before it.
  expect(at - before).toBeLessThan(AHEAD);
  expect(log().length).toBeLessThan(MONTHS - 4 * SLOTS);
  const { taskId } = await asked;
  await ada.tasks.cancel(taskId);
});

test("a timer ends in time although another caller has three hundred", async () => {
  await Promise.all(
    Array.from({ length: 300 }, (_, n) => ada.call("set_timer", { timer_name: `hers ${n}`, seconds: 3_600 })),
  );
  const { job_name } = await bob.call("set_timer", { timer_name: "his", seconds: 1 });
  const { results } = await bob.call("await_result", { job_names: [job_name], timeout_seconds: 20 });
  expect(results).toEqual({ [job_name]: "complete" });
});
