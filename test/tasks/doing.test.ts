/** A job's current activity is shown by probe_status, list_jobs and tasks/get. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { ProgressFeeds } from "../../core/jobs/feed/progress-feeds.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { feedEntryId } from "../../core/resonate/ids.ts";
import { until } from "../../testing/stack/program.ts";
import { bearerBindings, callerAt, type TestCaller } from "../auth/support.ts";
import { startGate } from "../support/gate.ts";
import { TASKS } from "../support/rpc.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { tasksAt } from "./support.ts";

let stack: Stack;
let ada: TestCaller;
beforeAll(async () => {
  stack = await startStack({ apart: true, bindings: bearerBindings({ ada: "static-token-of-ada" }) });
  ada = callerAt(stack.url, "static-token-of-ada");
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** Waits until every way to look at a job shows an activity that matches `meant`. */
async function shown(job: string, taskId: string, meant: RegExp) {
  return until(
    `all to say ${meant}`,
    async () => {
      const { statuses } = await ada.call("probe_status", { job_names: [job] });
      const list = await ada.call("list_jobs", { limit: 100 });
      const { statusMessage } = await ada.tasks.get(taskId);
      const said = [
        statuses[0].doing,
        // The status message of a task begins with the job name.
        statusMessage?.replace(`${job}: `, ""),
        list.jobs.find(({ job_name }: { job_name: string }) => job_name === job)?.doing,
      ];
      return said.every((text) => meant.test(text ?? "")) || undefined;
    },
    60_000,
  );
}

test("shows the attempt, the last failure, and when the next attempt is due", async () => {
  stack.archive.control.inject({ fault: { kind: "status", status: 503 }, month: "2012-01" });
  const place = { latitude: 47.6, longitude: -122.3 };
  const { taskId } = await ada.tasks.call("weather_data", { ...place, year: 2012, month: 1 });
  const retrying = /^request: attempt [2-9], Open-Meteo answered 503.*, next in \d+ s$/;
  await shown("weather_data_47.6_-122.3_2012_1", taskId, retrying);
  await ada.tasks.cancel(taskId);
  const { statuses } = await ada.call("probe_status", { job_names: ["weather_data_47.6_-122.3_2012_1"] });
  expect(statuses[0]).not.toHaveProperty("doing");
});

test("shows a range's question, and then how many of its months it has", async () => {
  stack.archive.control.inject({ fault: { kind: "status", status: 503 }, month: "2014-03" });
  const range = { latitude: 47.5, longitude: -122.3, from: "2012-03", to: "2014-03" };
  const { taskId } = await ada.tasks.call("weather_range", range);
  const job = "weather_range_47.5_-122.3_2012-03_2014-03";
  await shown(job, taskId, /^(waiting for an answer: )?Gathering 2012-03 to 2014-03 takes 25 requests/);
  // A client that cannot ask its user may confirm in an argument.
  await tasksAt(stack.url, "static-token-of-ada", TASKS).call("weather_range", { ...range, confirm: true });
  await shown(job, taskId, /^24 of 25 months$/);
  // The worker logs the activity too, for display in the terminal.
  const all = stack.workers[0]?.process.logs().filter(({ msg }) => msg === "job progress") ?? [];
  expect(all.map(({ doing }) => doing)).toContain("24 of 25 months");
});

test("of a progress feed with 240 entries only a few are read, each once", async () => {
  await using gate = await startGate(stack.resonate.url);
  const bindings = { ...bearerBindings({ ada: "static-token-of-ada" }), RESONATE_URL: gate.url };
  await using edge = await startStack({ resonate: stack.resonate, workers: 0, bindings });
  const bob = callerAt(edge.url, "static-token-of-ada");
  const { job_name } = await bob.call("start_gathering", { latitude: 1, longitude: 2, year: 2012, month: 1 });
  const id = edge.namespace + job_name;
  const { RESONATE_URL: url = "", RESONATE_TOKEN: token } = stack.resonate.env;
  const journals = new ProgressFeeds(new ResonateClient({ url, token }));
  const timeoutAt = Date.now() + 600_000;
  for (let n = 1; n <= 240; n++) await journals.write(id, n, { message: `told ${n}`, questions: {} }, { timeoutAt });
  const look = async () => {
    const before = gate.calls.length;
    const { statuses } = await bob.call("probe_status", { job_names: [job_name] });
    return { doing: statuses[0].doing, asked: gate.calls.slice(before).map((call) => call.id) };
  };
  const first = await look();
  expect(first.doing).toBe("told 240");
  expect(first.asked).toEqual([...new Set(first.asked)]);
  expect(first.asked.length).toBeLessThanOrEqual(1 + 9 + 50);
  const next = await until("the first look to be a second ago", async () => {
    const { asked } = await look();
    return asked.length > 1 ? asked : undefined;
  });
  expect(next).toEqual([id, feedEntryId(id, 241)]);
});
