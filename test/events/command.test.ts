/** The commands `wait` and `events`, which report jobs to shells. */
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../../testing/stack/port.ts";
import { bearerBindings, callerAt, type TestCaller } from "../auth/support.ts";
import { type Stack, startStack } from "../support/stack.ts";

const TOKENS = { ada: "static-token-of-ada" };

let stack: Stack;
let ada: TestCaller;
let unanswered: { url: string; commands: ReturnType<typeof command>[] };
beforeAll(async () => {
  // These commands take a minute, during which the other tests run.
  const url = `http://127.0.0.1:${await freePort()}/mcp`;
  unanswered = { url, commands: [["wait", "x"], ["events"]].map((args) => command(args, TOKENS.ada, url)) };
  stack = await startStack({ workers: 1, bindings: bearerBindings(TOKENS) });
  ada = callerAt(stack.url, TOKENS.ada);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const command = (args: string[], token = TOKENS.ada, url = stack.url) =>
  execa(process.execPath, [resolve("cli/main.ts"), ...args, "--url", url], {
    env: { MCP_TOKEN: token },
    reject: false,
  });

/** Reads the next line that a command prints. */
function linesOf({ stdout }: ReturnType<typeof command>) {
  const lines = createInterface({ input: stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  return async () => JSON.parse((await lines.next()).value as string);
}

const timer = (timer_name: string, seconds = 1) => ada.call("set_timer", { timer_name, seconds });

test("wait ends with the job: its result on stdout, its status as the exit code", async () => {
  await timer("soon", 2);
  const { exitCode, stdout } = await command(["wait", "timer_soon"]);
  expect([exitCode, JSON.parse(stdout)]).toEqual([0, "complete"]);
  await timer("stopped", 600);
  const waiting = command(["wait", "timer_stopped"]);
  await ada.call("cancel_job", { job_names: ["timer_stopped"] });
  expect(await waiting).toMatchObject({ exitCode: 3, stdout: "", stderr: expect.stringContaining("cancelled") });
  expect(await command(["wait", "timer_none"])).toMatchObject({ exitCode: 5, stdout: "" });
});

test("wait prints a line for each of several jobs, and gives up after --timeout", async () => {
  await timer("first");
  await timer("long", 600);
  const wait = (seconds: number) => command(["wait", "timer_first", "timer_long", "--timeout", `${seconds}`]);
  let ended = await wait(2);
  // On a busy machine the result of the first may take longer.
  for (let seconds = 4; ended.exitCode === 124 && ended.stdout === ""; seconds *= 2) ended = await wait(seconds);
  const { exitCode, stdout } = ended;
  expect([exitCode, stdout.split("\n").map((line) => JSON.parse(line))]).toEqual([
    124,
    [expect.objectContaining({ job_name: "timer_first", status: "complete" })],
  ]);
});

test("wait gives up after --timeout also if no server answers", async () => {
  const url = `http://127.0.0.1:${await freePort()}/mcp`;
  expect(await command(["wait", "x", "--timeout", "2"], TOKENS.ada, url)).toMatchObject({ exitCode: 124, stdout: "" });
});

test("wait prints the end of a job behind more than a hundred that run", async () => {
  const names = Array.from({ length: 101 }, (_, n) => `of many ${n}`);
  await Promise.all(names.slice(0, -1).map((name) => timer(name, 600)));
  await timer("of many 100");
  const waiting = command(["wait", ...names.map((name) => `timer_${name}`)]);
  expect(await linesOf(waiting)()).toMatchObject({ job_name: "timer_of many 100", status: "complete" });
  waiting.kill("SIGINT");
  expect(await waiting).toMatchObject({ signal: "SIGINT" });
});

test("a result of any length is printed whole", async () => {
  const args = { latitude: 47.6, longitude: -122.3, from: "2012-01", to: "2013-12" };
  const { job_name } = await ada.call("weather_range", args);
  const { exitCode, stdout } = await command(["wait", job_name]);
  const { statuses } = await ada.call("probe_status", { job_names: [job_name], result: "summary" });
  expect([exitCode, stdout.length]).toEqual([0, statuses[0].summary.characters]);
  expect(JSON.parse(stdout)).toEqual(expect.any(Object));
});

test("bad usage and a refused token have exit codes that no job has", async () => {
  expect(await command(["wait"])).toMatchObject({ exitCode: 2 });
  expect(await command(["wait", "x", "--timeout", "soon"])).toMatchObject({ exitCode: 2 });
  expect(await command(["wait", "timer_soon"], "wrong")).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("MCP_TOKEN"),
  });
});

test("events prints past events, and with --follow new ones, even across a restart of the edge", async () => {
  const following = command(["events", "job.ended", "--follow", "--kind", "timer"]);
  const next = linesOf(following);
  // The command follows once it prints a first event, so timers are started until then.
  let isBegun = false;
  const first = next().then((event) => {
    isBegun = true;
    return event;
  });
  for (let n = 0; !isBegun; n++) {
    await timer(`begin${n}`);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
  }
  expect(await first).toMatchObject({ name: "job.ended", data: { status: "complete" } });
  await timer("over", 4);
  await stack.edge.kill();
  await stack.edge.start();
  let event = await next();
  // Late events of the jobs of earlier tests may come first.
  while (event.data.job_name !== "timer_over") event = await next();
  expect(event).toMatchObject({ data: { job_name: "timer_over" }, cursor: expect.any(String) });
  following.kill();
  const kept = await command(["events", "job.ended", "--job", "timer_soon"]);
  expect([kept.exitCode, JSON.parse(kept.stdout)]).toEqual([
    0,
    expect.objectContaining({ eventId: "ended_timer_soon" }),
  ]);
});

test("a server that is not there is named, and has an exit code that no job has", async () => {
  for (const ended of await Promise.all(unanswered.commands)) {
    expect(ended).toMatchObject({ exitCode: 1, stdout: "", stderr: expect.stringContaining(unanswered.url) });
    expect(ended.stderr).toContain("fetch failed");
  }
});
