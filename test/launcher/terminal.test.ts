import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { type SampleArchive, startSampleArchive } from "../../tools/weather/sample-archive/server.ts";
import { rpc } from "../support/rpc.ts";
import { CAPABILITIES } from "../tasks/support.ts";
import { isColored, screenOf } from "./emulator.ts";
import { type Launcher, launch } from "./launcher.ts";

// These tests start whole stacks, two at once.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const TERMINAL = { columns: 200, rows: 30 };
const RANGE = { latitude: 47.6, longitude: -122.3, from: "2012-01", to: "2014-12" };
const NAME = "weather_range_47.6_-122.3_2012-01_2014-12";

let archive: SampleArchive;
beforeAll(async () => {
  archive = await startSampleArchive();
});
afterAll(() => archive?.[Symbol.asyncDispose]());

/** Starts a stack with or without a terminal; `call` calls its tools. */
async function started(options: Parameters<typeof launch>[0]) {
  const env = {
    WEATHER_API_URL: archive.url,
    CI: undefined,
    NO_COLOR: undefined,
    TERM: "xterm-256color",
    ...options?.env,
  };
  const launcher = await launch({ via: "node", ...options, args: ["--memory", ...(options?.args ?? [])], env });
  await launcher.printed("Ready.");
  const client = new Client({ name: "terminal-test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(launcher.url)));
  const call = (name: string, args: object) => client.callTool({ name, arguments: { ...args } });
  return { launcher, call, close: () => client.close() };
}

/** Waits until `test` holds for the lines on the screen, and resolves with them. */
async function shows(launcher: Launcher, wanted: string, test: (lines: string[]) => unknown): Promise<string[]> {
  const lines = () => screenOf(launcher.output());
  return until(wanted, () => (test(lines()) ? lines() : undefined), 120_000).catch((error: Error) => {
    throw new Error(`${error.message}; the screen has:\n${lines().join("\n")}`);
  });
}

const about = (name: string) => (lines: string[]) => lines.filter((line) => line.includes(name));

describe("at a terminal", () => {
  let launcher: Launcher;
  let call: (name: string, args: object) => Promise<unknown>;
  let close: () => Promise<void>;
  beforeAll(async () => {
    ({ launcher, call, close } = await started({ terminal: TERMINAL }));
  });
  afterAll(async () => {
    await close?.();
    await launcher?.[Symbol.asyncDispose]();
  });

  test("a range is one line, which changes in place from its question to its duration", async () => {
    archive.control.inject({ fault: { kind: "status", status: 503 }, month: "2012-05" });
    // The client shows questions: another client would have to confirm before the job starts.
    await rpc(launcher.url, "tools/call", { name: "weather_range", arguments: RANGE }, { capabilities: CAPABILITIES });
    const asks =
      / {2}asks {5}weather_range_47\.6_-122\.3_2012-01_2014-12: (http:\/\/\S+) Gathering 2012-01 to 2014-12 takes 36 requests/;
    const asking = await shows(launcher, "the question", (lines) => lines.some((line) => asks.test(line)));
    const [, page = ""] = asks.exec(asking.join("\n")) ?? [];
    expect((await fetch(page)).headers.get("content-type")).toContain("text/html");
    await call("weather_range", { ...RANGE, confirm: true });
    const nearly = /running {2}━+─+ weather_range\S+: 35 of 36 months; 1 of its jobs tries again: .*503.* \([\w ]+\)$/;
    const before = await shows(launcher, "all but one month", (lines) => lines.some((line) => nearly.test(line)));
    expect(about("weather_")(before)).toHaveLength(1);
    archive.control.clear();
    const done = /^\d\d:\d\d:\d\d {2}complete weather_range\S+ \([\d.]+ (s|min)\)$/;
    const after = await shows(launcher, "its end", (lines) => lines.some((line) => done.test(line)));
    expect(about("weather_")(after)).toHaveLength(1);
    expect(isColored(launcher.output())).toBe(true);
  });

  test("a timer shows its remaining time, and its cancellation during its sleep", async () => {
    await call("set_timer", { timer_name: "tea", seconds: 3_000 });
    const left = / {2}running {2}timer_tea: until \d\d:\d\d:\d\d, in [1-5]\d min( \d+ s)? \([\w ]+\)$/;
    await shows(launcher, "the timer", (lines) => lines.some((line) => left.test(line)));
    await call("cancel_job", { job_names: ["timer_tea"] });
    const lines = await shows(launcher, "its end", (lines) =>
      lines.some((line) => /cancelled timer_tea \(/.test(line)),
    );
    expect(about("timer_tea")(lines)).toHaveLength(1);
  });

  test("a step shows its attempt, when the next one is due, and the last failure", async () => {
    archive.control.inject({ fault: { kind: "status", status: 503 }, month: "2013-03" });
    await call("start_gathering", { latitude: 47.6, longitude: -122.3, year: 2013, month: 3, timezone: "Asia/Tokyo" });
    const retrying = / {2}retrying weather_data\S+: request, attempt \d+ failed, (next in \d+ s|trying again): .*503/;
    await shows(launcher, "the attempt", (lines) => lines.some((line) => retrying.test(line)));
    archive.control.clear();
    await shows(launcher, "its end", (lines) => lines.some((line) => /complete weather_data\S+ \(/.test(line)));
  });
});

test("with --plain each line stays, a range has few lines, and no control character is written", async () => {
  archive.control.inject({ fault: { kind: "status", status: 503 }, month: "2012-05" });
  const before = archive.control.count("2012-05");
  const { launcher, call, close } = await started({ args: ["--plain"], terminal: TERMINAL, env: { NO_COLOR: "1" } });
  await using _launcher = launcher;
  await call("weather_range", { ...RANGE, confirm: true });
  await until("more attempts", () => archive.control.count("2012-05") > before + 2, 120_000);
  archive.control.clear();
  await launcher.printed(`complete ${NAME} (`);
  // No worker logs the cancellation of a sleeping job, so the launcher reports it by itself.
  await call("set_timer", { timer_name: "tea", seconds: 3_600 });
  await launcher.printed("started  timer_tea");
  await call("cancel_job", { job_names: ["timer_tea"] });
  await launcher.printed("cancelled timer_tea (");
  await close();
  expect(launcher.output()).not.toContain("\u001b");
  const lines = launcher
    .output()
    .split(/\r?\n/)
    .filter((line) => line.includes("weather_"));
  expect(lines[0]).toMatch(/started {2}weather_range/);
  expect(lines.filter((line) => line.includes("weather_data_"))).toEqual([expect.stringMatching(/retrying .*503/)]);
});
