/** The operators' view of an account's runners, which report through a binding and sleep between jobs. */
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { startEdge } from "../../cli/launcher/local-edge.ts";
import { run, until } from "../../testing/stack/program.ts";
import { startSampleArchive } from "../../tools/weather/sample-archive/server.ts";
import { callerAt } from "../auth/support.ts";
import { operatorAt } from "../operate/support.ts";
import { SEATTLE } from "../support/months.ts";

test("runners report their jobs like workers, and a sleeping runner is not reported as gone", async () => {
  await using cleanup = new AsyncDisposableStack();
  const archive = cleanup.use(await startSampleArchive());
  const bindings = { AUTH_MODE: "none", RATE_LIMIT: "0", WEATHER_API_URL: archive.url, OPERATE: "local" };
  const { url } = cleanup.use(await startEdge({ port: 0, bindings }));
  const [caller, operator] = [callerAt(`${url}/mcp`, ""), operatorAt(url)];
  expect((await operator.get("overview")).workers).toEqual([]);

  archive.control.inject({ fault: { kind: "status", status: 404, reason: "the archive has moved" } });
  const month = await caller.call("start_gathering", { ...SEATTLE, year: 2014, month: 1 });
  await caller.call("set_timer", { timer_name: "tea", seconds: 3_600 });
  const overview = await until("what has happened to be told", async () => {
    const seen = await operator.get("overview");
    return seen.groups.length > 0 && seen.waits.length > 0 && seen;
  });
  expect(overview.groups).toMatchObject([
    { kind: "weather_data", reason: expect.stringContaining("the archive has moved"), count: 1 },
  ]);
  expect(overview.waits).toMatchObject([{ kind: "timer", state: "sleeping", n: 1 }]);
  expect(overview.kinds).toContainEqual(expect.objectContaining({ kind: "weather_data", started: 1, failed: 1 }));
  expect(overview.workers).toMatchObject([
    { worker: "runners", isRunner: true, connected: true, kinds: { timer: 1 }, slots: { running: 0, waiting: 0 } },
  ]);
  const { failure } = await operator.get("job", { job: month.job_name });
  expect(failure).toMatchObject({ worker: "runners" });
  // The stack names the line of the source, like a worker's.
  const [, file = "", line] = /OpenMeteo\.daily \((tools\/[\w/-]+\.ts):(\d+)\)/.exec(failure.stack) ?? [];
  const source = (await readFile(file, "utf8")).split("\n");
  expect(source[Number(line) - 1]).toContain("throw");
  await using said = run("cli/main.ts", { args: ["operate", "overview", "--url", url] });
  expect(await said.exited).toMatchObject({ exitCode: 0 });
  expect(said.output()).toMatch(/worker runners: 0 of 50 slots, asleep until the next job/);

  archive.control.clear();
  const { preview } = await operator.post("preview", { kind: "weather_data" });
  await operator.act({ do: "retry", preview });
  const { results } = await caller.call("await_result", { job_names: [`${month.job_name}~2`] });
  expect(Object.keys(results)).toEqual([`${month.job_name}~2`]);
});
