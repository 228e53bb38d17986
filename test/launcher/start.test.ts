import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { gone, type Launcher, launch } from "./launcher.ts";

// Some of these tests start whole stacks, several at once.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const JULY = { latitude: 47.6062, longitude: -122.3321, year: 2014, month: 7 };
const JULY_NAME = "weather_data_47.6062_-122.3321_2014_7";

async function connect(url: string): Promise<Client> {
  const client = new Client({ name: "launcher-test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

async function call(client: Client, name: string, args: object): Promise<Record<string, unknown>> {
  const { structuredContent, content } = await client.callTool({ name, arguments: { ...args } });
  if (!structuredContent) throw new Error(JSON.stringify(content));
  return structuredContent as Record<string, unknown>;
}

describe("npm start", () => {
  let launcher: Launcher;
  beforeAll(async () => {
    launcher = await launch({ args: ["--sample-weather", "--memory"] });
    await launcher.printed("Ready.");
  });
  afterAll(() => launcher?.[Symbol.asyncDispose]());

  test("prints the URL, without colors if there is no terminal", () => {
    const output = launcher.output();
    expect(output).toMatch(new RegExp(`MCP endpoint +${launcher.url}$`, "m"));
    expect(output).not.toContain("\u001b");
  });

  test("runs a gathering and a timer, and prints their starts and ends", async () => {
    const client = await connect(launcher.url);
    expect(await call(client, "start_gathering", JULY)).toMatchObject({ job_name: JULY_NAME });
    await call(client, "set_timer", { timer_name: "tea", seconds: 1 });
    const { results } = await call(client, "await_result", { job_names: [JULY_NAME, "timer_tea"] });
    expect(results).toMatchObject({ [JULY_NAME]: { daily: { time: expect.arrayContaining(["2014-07-31"]) } } });
    expect(results).toHaveProperty("timer_tea");
    await client.close();

    const output = await launcher.printed("complete timer_tea");
    expect(output).toMatch(/^\d\d:\d\d:\d\d {2}started {2}weather_data_47\.6062_-122\.3321_2014_7$/m);
    expect(output).toMatch(/^\d\d:\d\d:\d\d {2}complete weather_data_47\.6062_-122\.3321_2014_7 \(.+ m?s\)$/m);
  });

  test("keeps other programs of the machine from the jobs, because the embedded server demands a secret", async () => {
    const server = `http://127.0.0.1:${launcher.ports.resonate}`;
    const head = { corrId: "1", version: "2026-04-01" };
    const body = JSON.stringify({ kind: "promise.get", head, data: { id: "timer_tea" } });
    const read = await fetch(server, { method: "POST", headers: { "content-type": "application/json" }, body });
    expect([read.status, await read.text()]).toEqual([401, expect.not.stringContaining("timer_tea")]);
    const poll = await fetch(`${server}/poll/workers/me`);
    expect(poll.status).toBe(401);
    await poll.body?.cancel();
  });

  test.runIf(process.platform === "linux")(
    "has no secret in an argument list, which other users could read",
    async () => {
      const family = await launcher.family();
      const { pid } = await launcher.member("worker/main.ts");
      const variables = (await readFile(`/proc/${pid}/environ`, "utf8")).split("\0");
      const secret = variables.find((each) => each.startsWith("RESONATE_TOKEN="))?.slice("RESONATE_TOKEN=".length);
      expect(secret).toMatch(/^\S{16,}$/);
      for (const { command } of family) expect(command).not.toContain(secret);
      const [edge] = family.filter(({ command }) => command.includes("workerd serve"));
      const key = /TASK_KEY=([^\0]+)/.exec(await readFile(`/proc/${edge?.pid}/environ`, "utf8"))?.[1];
      expect(key).toMatch(/^\S{32,}$/);
      for (const { command } of family) expect(command).not.toContain(key);
    },
  );

  test("shows why a job failed", async () => {
    const client = await connect(launcher.url);
    await call(client, "start_gathering", { ...JULY, latitude: 0 });
    await client.close();
    expect(await launcher.printed("failed   weather_data_0_")).toMatch(/failed {3}weather_data_0_.*: .*location/);
  });

  test.each([
    { part: "the worker", command: "worker/main.ts" },
    { part: "the edge", command: "workerd serve" },
    { part: "Resonate", command: "server/node/process.ts" },
  ])("starts $part again after a kill -9, and says so", async ({ part, command }) => {
    const { pid } = await launcher.member(command);
    process.kill(pid, "SIGKILL");
    await launcher.printed(`${part} ended (SIGKILL); starting it again in`);
    await launcher.printed(`${part} is back`);
    expect((await launcher.member(command)).pid).not.toBe(pid);

    const client = await connect(launcher.url);
    await call(client, "set_timer", { timer_name: `after_${command.length}`, seconds: 1 });
    await launcher.printed(`complete timer_after_${command.length}`);
    await client.close();
  });

  test("ends everything at Ctrl-C", async () => {
    const family = await launcher.family();
    expect(family.length).toBeGreaterThan(6);
    launcher.interrupt();
    await launcher.exited;
    await gone(family);
    expect(launcher.output()).toContain("Stopping ...");
  });
});

describe.concurrent("nothing is left behind", () => {
  const args = ["--sample-weather", "--memory"];

  test("when only npm gets SIGTERM", async () => {
    await using launcher = await launch({ args });
    await launcher.printed("Ready.");
    const family = await launcher.family();
    launcher.signal("SIGTERM");
    await gone(family);
  });

  test("when the launcher gets SIGTERM, which exits 0", async () => {
    await using launcher = await launch({ args, via: "node" });
    await launcher.printed("Ready.");
    const family = await launcher.family();
    launcher.signal("SIGTERM");
    expect(await launcher.exited).toMatchObject({ exitCode: 0 });
    await gone(family);
  });

  test("when it is interrupted while it starts", async () => {
    await using launcher = await launch({ args, via: "node" });
    const family = await until("a child to be there", async () => {
      const family = await launcher.family();
      return family.length > 2 ? family : undefined;
    });
    launcher.signal("SIGINT");
    expect(await launcher.exited).toMatchObject({ exitCode: 0 });
    await gone(family);
  });

  test("when a second Ctrl-C comes while a process does not end", async () => {
    await using launcher = await launch({ args, via: "node" });
    await launcher.printed("Ready.");
    const family = await launcher.family();
    process.kill((await launcher.member("worker/main.ts")).pid, "SIGSTOP");
    const again = setInterval(() => launcher.signal("SIGINT"), 200);
    expect(await launcher.exited).toMatchObject({ exitCode: 1 });
    clearInterval(again);
    await gone(family);
  });
});

test("with --data, jobs go on after a kill -9 of the launcher, which leaves nothing behind", async () => {
  const data = await mkdtemp(join(tmpdir(), "launcher-"));
  const args = ["--sample-weather", "--data", data];
  try {
    await using first = await launch({ args, via: "node" });
    await first.printed("Ready.");
    const before = await connect(first.url);
    await call(before, "set_timer", { timer_name: "eggs", seconds: 2 });
    await before.close();
    const family = await first.family();
    first.signal("SIGKILL");
    await gone(family);

    await using second = await launch({ args, via: "node" });
    await second.printed("Ready.");
    const after = await connect(second.url);
    expect(await call(after, "await_result", { job_names: ["timer_eggs"] })).toMatchObject({ running: [] });
    await after.close();
  } finally {
    await rm(data, { recursive: true });
  }
});
