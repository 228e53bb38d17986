/** Gatherings, which all callers share: each caller may give up only what it started, and the others keep their job. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { type Month, monthsOfItsOwn } from "../support/months.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { bearerBindings, callerAt, type TestCaller } from "./support.ts";

const NAMES = ["ada", "bob", "cy", "di", "ed", "fay"];

let stack: Stack;
let callers: TestCaller[];
let ada: TestCaller;
let bob: TestCaller;
let cy: TestCaller;
beforeAll(async () => {
  const tokens = Object.fromEntries(NAMES.map((name) => [name, `static-token-of-${name}`]));
  stack = await startStack({ bindings: bearerBindings(tokens) });
  callers = Object.values(tokens).map((token) => callerAt(stack.url, token));
  [ada, bob, cy] = callers as [TestCaller, TestCaller, TestCaller];
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const nextMonth = monthsOfItsOwn();

/** A month whose gathering cannot succeed until the archive's faults are cleared. */
function held(): Month {
  const month = nextMonth();
  stack.archive.control.inject({ fault: { kind: "status", status: 503 }, month: month.archived });
  return month;
}

const start = async (caller: TestCaller, month: Month): Promise<string> =>
  (await caller.call("start_gathering", month.args)).job_name;
const cancel = async (caller: TestCaller, job: string) => {
  const outcome: Record<string, string[]> = await caller.call("cancel_job", { job_names: [job] });
  return Object.keys(outcome).find((key) => outcome[key]?.includes(job));
};
const statusOf = async (job: string): Promise<string> =>
  (await cy.call("probe_status", { job_names: [job] })).statuses[0].status;

test("callers who ask for the same month share one job, which fetches it once", async () => {
  const month = nextMonth();
  const jobs = await Promise.all(callers.map((caller) => start(caller, month)));
  expect(new Set(jobs)).toEqual(new Set([month.job]));
  const results = await Promise.all(callers.map((caller) => caller.call("await_result", { job_names: [month.job] })));
  expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(1);
  expect(stack.archive.control.count(month.archived)).toBe(1);
});

describe("cancelling a gathering", () => {
  test("that only others started is answered with not_found, and stops nothing", async () => {
    const month = held();
    await start(ada, month);
    expect(await cancel(bob, month.job)).toBe("not_found");
    expect(await statusOf(month.job)).toBe("running");
    expect(await cancel(ada, month.job)).toBe("cancelled");
    expect(await statusOf(month.job)).toBe("cancelled");
    expect(await cancel(bob, month.job)).toBe("not_found");
  });

  test.each([
    ["first", 0],
    ["second", 1],
    ["third", 2],
  ])("lets it go on for the others if the caller was the %s to start it", async (_which, leaver) => {
    const month = held();
    for (const caller of [ada, bob, cy]) await start(caller, month);
    const [first, second, third] = [0, 1, 2].map((i) => callers[(leaver + i) % 3]) as [
      TestCaller,
      TestCaller,
      TestCaller,
    ];
    expect(await cancel(first, month.job)).toBe("given_up");
    expect(await cancel(first, month.job)).toBe("given_up");
    expect(await statusOf(month.job)).toBe("running");
    expect(await cancel(second, month.job)).toBe("given_up");
    expect(await statusOf(month.job)).toBe("running");
    expect(await cancel(third, month.job)).toBe("cancelled");
    expect(await statusOf(month.job)).toBe("cancelled");
  });

  test("by its task has the same effect", async () => {
    const month = held();
    const hers = await ada.tasks.call("weather_data", month.args);
    const his = await bob.tasks.call("weather_data", month.args);
    await ada.tasks.cancel(hers.taskId);
    expect((await bob.tasks.get(his.taskId)).status).toBe("working");
    await bob.tasks.cancel(his.taskId);
    expect((await ada.tasks.get(hers.taskId)).status).toBe("cancelled");
  });

  test("and starting it again while it runs renews the caller's claim", async () => {
    const month = held();
    for (const caller of [ada, bob]) await start(caller, month);
    expect(await cancel(ada, month.job)).toBe("given_up");
    expect(await start(ada, month)).toBe(month.job);
    expect(await cancel(bob, month.job)).toBe("given_up");
    expect(await statusOf(month.job)).toBe("running");
    expect(await cancel(ada, month.job)).toBe("cancelled");
  });

  test("keeps it in the caller's list, and starting it again does not list it twice", async () => {
    const month = held();
    for (const caller of [ada, bob]) await start(caller, month);
    for (const again of [false, true]) {
      await (again ? start(ada, month) : cancel(ada, month.job));
      for (const [caller, times] of [
        [ada, 1],
        [bob, 1],
        [cy, 0],
      ] as const) {
        const { jobs } = await caller.call("list_jobs", { kind: "weather_data", limit: 100 });
        const names = jobs.map(({ job_name }: { job_name: string }) => job_name);
        expect(names.filter((name: string) => name === month.job)).toHaveLength(times);
      }
    }
  });

  test("for the last caller makes the next start a new attempt, which is shared, too", async () => {
    const month = held();
    await start(ada, month);
    await cancel(ada, month.job);
    const again = `${month.job}~2`;
    expect(await start(bob, month)).toBe(again);
    expect(await start(ada, month)).toBe(again);
    expect(await cancel(bob, again)).toBe("given_up");
    expect(await cancel(cy, again)).toBe("not_found");
    expect(await statusOf(again)).toBe("running");
    expect(await cancel(ada, again)).toBe("cancelled");
  });

  test("that has finished changes nothing", async () => {
    const month = nextMonth();
    await start(ada, month);
    await bob.call("await_result", { job_names: [month.job] });
    expect(await cancel(bob, month.job)).toBe("not_found");
    expect(await cancel(ada, month.job)).toBe("already_finished");
    expect(await start(bob, month)).toBe(month.job);
    expect(await statusOf(month.job)).toBe("complete");
  });
});

test("a month that a range waits for cannot be cancelled by other callers", async () => {
  const { args, job, archived } = held();
  const { latitude, longitude } = args;
  const range = { latitude, longitude, from: archived, to: archived };
  const { taskId } = await ada.tasks.call("weather_range", range);
  await until("the range to start its month", async () => (await statusOf(job)) === "running");
  expect(await cancel(bob, job)).toBe("not_found");
  await bob.call("start_gathering", args);
  expect(await cancel(bob, job)).toBe("given_up");
  stack.archive.control.clear();
  const done = await ada.tasks.reaches(taskId, "completed", 25_000);
  expect(done.result.structuredContent).toMatchObject({ status: "complete" });
});

test("a caller whose start is answered never gets a job that others cancel at the same time", async () => {
  for (let round = 0; round < 12; round++) {
    const month = held();
    const [stayer, ...leavers] = callers.toSorted(() => Math.random() - 0.5) as [TestCaller, ...TestCaller[]];
    // In every other round the job runs already, so that cancels meet starts from the first moment.
    if (round % 2 === 1) await Promise.all(leavers.map((caller) => start(caller, month)));
    const leave = async (caller: TestCaller) => cancel(caller, await start(caller, month));
    const [told] = await Promise.all([start(stayer, month), ...leavers.map(leave)]);
    expect([round, told, await statusOf(told)]).toEqual([round, told, "running"]);
    expect(await cancel(stayer, told)).toBe("cancelled");
  }
});
