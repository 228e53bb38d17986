/** An operator sees failures, finds their cause and acts on jobs, on the whole stack with workers' reports. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { run, until } from "../../testing/stack/program.ts";
import { callerAt } from "../auth/support.ts";
import { SEATTLE } from "../support/months.ts";
import type { Stack } from "../support/stack.ts";
import { operatorAt, startOperated } from "./support.ts";

vi.setConfig({ testTimeout: 150_000, hookTimeout: 150_000 });

let stack: Stack;
beforeAll(async () => {
  stack = await startOperated();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const MONTHS = [1, 2, 3, 4, 5, 6].map((month) => ({ ...SEATTLE, year: 2014, month }));
const GONE = { fault: { kind: "status", status: 404, reason: "the archive has moved" } } as const;

/** Starts months that all fail for one reason, waits for their ends, and returns their job names. */
async function failures(caller: ReturnType<typeof callerAt>, months = MONTHS) {
  stack.archive.control.inject(GONE);
  const started = await Promise.all(months.map((month) => caller.call("start_gathering", month)));
  const names: string[] = started.map(({ job_name }) => job_name);
  await caller.call("await_result", { job_names: names }).catch(() => {});
  return names;
}

test("in an incident, failures are grouped by reason, can be examined, and are all retried with one action", async () => {
  const operator = operatorAt(stack.origin);
  const caller = callerAt(stack.url, "");
  const names = await failures(caller);
  const group = await until("the failures to be reported", async () => {
    const { groups } = await operator.get("overview");
    return groups.find(({ count }: { count: number }) => count === names.length);
  });
  expect(group).toMatchObject({ kind: "weather_data", reason: expect.stringContaining("the archive has moved") });
  const filter = { kind: group.kind, reason: group.reason };
  const { jobs, count } = await operator.get("jobs", filter);
  expect(count).toBe(names.length);

  const [{ job }] = jobs;
  const one = await operator.get("job", { job });
  expect(one).toMatchObject({
    status: "failed",
    version: 1,
    deployed_version: 1,
    failure: { worker: expect.any(String) },
  });
  expect(one.failure.stack).toContain("open-meteo");
  expect(one.timeline.every(({ bytes }: { bytes: number }) => bytes > 0)).toBe(true);
  expect(one).not.toHaveProperty("args");
  expect(await operator.get("job", { job, values: "1" })).toMatchObject({ args: { year: 2014 } });

  const { alerts } = await operator.get("overview");
  expect(alerts).toContainEqual(expect.objectContaining({ name: "jobs-fail" }));
  expect(await (await fetch(`${stack.origin}/operate/metrics`)).text()).toContain('durable_alert{name="jobs-fail"} 1');

  stack.archive.control.clear();
  const { preview } = await operator.post("preview", filter);
  const state = await operator.act({ do: "retry", preview, from: "last" });
  expect(state).toMatchObject({ total: names.length });
  const again = names.map((name) => `${name}~2`);
  const { results } = await caller.call("await_result", { job_names: again });
  expect(Object.keys(results)).toEqual(expect.arrayContaining(again));
  expect((await operator.get("jobs", filter)).count).toBe(0);

  const { entries } = await operator.get("audit-log");
  const said = entries.map(({ who, what }: { who: string; what: string }) => `${who}: ${what}`);
  expect(said).toEqual(["this machine: retry: done", "this machine: retry", "this machine: values read"]);
});

test("an operator stops and allows starts, and pauses and resumes jobs, on the command line", async () => {
  const caller = callerAt(stack.url, "");
  const operate = async (...args: string[]) => {
    await using program = run("cli/main.ts", { args: ["operate", ...args, "--url", stack.origin, "--json"] });
    expect(await program.exited).toMatchObject({ exitCode: 0 });
    return JSON.parse(program.output());
  };
  const timer = (timer_name: string) => caller.call("set_timer", { timer_name, seconds: 1 });
  const statusOf = async (name: string) =>
    (await caller.call("probe_status", { job_names: [name] })).statuses[0].status;

  await timer("before");
  await operate("stop-starts");
  let tries = 0;
  await until("starts to be refused", () =>
    timer(`refused ${++tries}`).then(
      () => undefined,
      (error) => error.message.includes("stopped new jobs"),
    ),
  );
  // A start of an existing job still finds it.
  await timer("before");
  await operate("allow-starts");
  await until("starts to be allowed", () =>
    timer("held").then(
      () => true,
      () => undefined,
    ),
  );

  await operate("pause", "--all");
  expect((await operate("overview")).paused).toEqual({ all: true, callers: [], jobs: [] });
  // A worker learns of the pause within some seconds.
  const held = await until("a job to be held back", async () => {
    const name = `timer_held ${Date.now()}`;
    await timer(name.slice("timer_".length));
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    return (await statusOf(name)) === "running" ? name : undefined;
  });
  await operate("pause", held);
  await operate("resume", "--all");
  expect((await operate("overview")).paused).toMatchObject({ jobs: [held] });
  expect(await statusOf(held)).toBe("running");
  await operate("resume", held);
  await until("it to end", async () => (await statusOf(held)) === "complete" || undefined);
  const long = await caller.call("set_timer", { timer_name: "long", seconds: 3_600 });
  expect(await operate("cancel", long.job_name)).toMatchObject({ outcomes: { [long.job_name]: "it is cancelled" } });
  expect(await statusOf(long.job_name)).toBe("cancelled");
});

test("an action that the edge's death interrupts is finished when the edge is back, and is in the audit log once", async () => {
  const operator = operatorAt(stack.origin);
  const caller = callerAt(stack.url, "");
  const months = Array.from({ length: 24 }, (_, i) => ({
    ...SEATTLE,
    year: 2012 + Math.floor(i / 12),
    month: (i % 12) + 1,
  }));
  const names = await failures(caller, months);
  await until(
    "the failures to be reported",
    async () => (await operator.get("jobs")).count === names.length || undefined,
  );
  stack.archive.control.clear();
  const { entries } = await operator.get("audit-log", { limit: "1" });
  const { preview } = await operator.post("preview", {});
  const acting = operator.act({ do: "retry", preview, from: "start" }).catch(() => {});
  await until("it to be noted", async () => {
    const { entries: now } = await operator.get("audit-log", { limit: "1" });
    return now[0].n > entries[0].n || undefined;
  });
  await stack.edge.kill();
  await acting;
  await stack.edge.start();
  await until("it to be done", async () => (await operator.get("jobs")).count === 0 || undefined, 60_000);
  const again = names.map((name) => `${name}~2`);
  for (const name of again) {
    const { results } = await caller.call("await_result", { job_names: [name] });
    expect(Object.keys(results)).toEqual([name]);
  }
  const { statuses } = await caller.call("probe_status", { job_names: names.map((name) => `${name}~3`) });
  expect(statuses.every(({ status }: { status: string }) => status === "not_found")).toBe(true);
  const { entries: later } = await operator.get("audit-log", { after: String(entries[0].n) });
  expect(later.map(({ what }: { what: string }) => what)).toEqual(["retry", "retry: done"]);
});
