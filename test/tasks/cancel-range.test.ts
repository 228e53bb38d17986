/** Cancelling a range starts no further months and ends those that nobody else wants. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { bearerBindings, callerAt, type TestCaller } from "../auth/support.ts";
import { TASKS } from "../support/rpc.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { tasksAt } from "./support.ts";

const TOKENS = { ada: "static-token-of-ada", bob: "static-token-of-bob" };

let stack: Stack;
let ada: TestCaller;
let bob: TestCaller;
beforeAll(async () => {
  stack = await startStack({ bindings: bearerBindings(TOKENS), workers: 2 });
  [ada, bob] = [callerAt(stack.url, TOKENS.ada), callerAt(stack.url, TOKENS.bob)];
  stack.archive.control.inject({ fault: { kind: "status", status: 503 } });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

let places = 0;
const ownPlace = () => ({ latitude: Number((40 + ++places / 100).toFixed(2)), longitude: 5 });
const nameOf = ({ latitude }: { latitude: number }, year: number, month: number) =>
  `weather_data_${latitude}_5_${year}_${month}`;
const statusesOf = async (names: readonly string[]): Promise<string[]> =>
  (await ada.call("probe_status", { job_names: names })).statuses.map(({ status }: { status: string }) => status);
const become = (names: readonly string[], status: string) =>
  until(`${names} to be ${status}`, async () => (await statusesOf(names)).every((each) => each === status), 20_000);

test("cancels the range's months except those that another caller or job wants", async () => {
  const place = ownPlace();
  const months = Array.from({ length: 24 }, (_, i) => nameOf(place, 2012 + Math.floor(i / 12), (i % 12) + 1));
  const range = { ...place, from: "2012-01", to: "2013-12" };
  await bob.call("start_gathering", { ...place, year: 2012, month: 2 });
  const { taskId } = await ada.tasks.call("weather_range", range);
  await become(months, "running");
  await ada.call("start_gathering", { ...place, year: 2012, month: 3 });
  await bob.call("start_gathering", { ...place, year: 2012, month: 4 });
  const other = await bob.tasks.call("weather_range", { ...place, from: "2013-11", to: "2013-12" });
  await until("the other range to wait", async () => {
    const { statusMessage } = await bob.tasks.get(other.taskId);
    return statusMessage?.includes("waiting for 2 jobs") || undefined;
  });

  await ada.tasks.cancel(taskId);
  const kept = [1, 2, 3, 22, 23];
  const those = (are: readonly number[]) => months.filter((_, i) => are.includes(i));
  await become(
    months.filter((_, i) => !kept.includes(i)),
    "cancelled",
  );
  expect(await statusesOf(those(kept))).toEqual(kept.map(() => "running"));
  // Bob's range wants two of these months: they end with it.
  await bob.tasks.cancel(other.taskId);
  await become(those([22, 23]), "cancelled");
  // The same call then starts a new range with new months.
  expect((await ada.tasks.call("weather_range", range)).taskId).not.toBe(taskId);
  await become([`${months[0]}~2`], "running");
});

test("stops months from starting at any moment, even when a worker dies", async () => {
  for (const delay of [0, 20, 60, 150, 400]) {
    const place = ownPlace();
    const { taskId } = await tasksAt(stack.url, TOKENS.ada, TASKS).call("weather_range", {
      ...place,
      from: "1990-01",
      to: "2009-12",
      confirm: true,
    });
    await new Promise((resolve) => setTimeout(resolve, delay));
    await ada.tasks.cancel(taskId);
    if (delay === 60) {
      await stack.workers[0]?.kill();
      await stack.workers[0]?.start();
    }
    const isLeft = async (name: string) => {
      const promise = await stack.resonate.get(`${stack.namespace}${name}`);
      return promise !== undefined && promise.state !== "rejected_canceled";
    };
    const names = Array.from({ length: 240 }, (_, i) => nameOf(place, 1990 + Math.floor(i / 12), (i % 12) + 1));
    const someAreLeft = async () => {
      for (const name of names) if (await isLeft(name)) return true;
      return false;
    };
    await until(`no month to be left after ${delay} ms`, async () => !(await someAreLeft()), 100_000);
  }
}, 300_000);

test("does the same where callers are not distinguished", async () => {
  await using open = await startStack({ workers: 1, resonate: stack.resonate });
  open.archive.control.inject({ fault: { kind: "status", status: 503 } });
  const anyone = callerAt(open.url, "");
  const place = ownPlace();
  const range = (from: string, to: string) => anyone.tasks.call("weather_range", { ...place, from, to });
  const status = async (month: number) =>
    (await anyone.call("probe_status", { job_names: [nameOf(place, 2012, month)] })).statuses[0].status;
  const [first, second] = [await range("2012-01", "2012-06"), await range("2012-05", "2012-08")];
  for (const month of [1, 2, 5, 8])
    await until("it to run", async () => (await status(month)) === "running" || undefined);
  await anyone.call("start_gathering", { ...place, year: 2012, month: 2 });
  await until("the second to wait for its months", async () => {
    const { statusMessage } = await anyone.tasks.get(second.taskId);
    return statusMessage?.includes("waiting for 4 jobs") || undefined;
  });
  await anyone.tasks.cancel(first.taskId);
  for (const month of [1, 3, 4])
    await until("it to end", async () => (await status(month)) === "cancelled" || undefined);
  for (const month of [2, 5, 6, 7, 8]) expect([month, await status(month)]).toEqual([month, "running"]);
});
