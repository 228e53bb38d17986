// Backup and restore of everything that an account stores, and its move to another Resonate server, which is the one at
// RESONATE_URL or an embedded one.

import { mkdir, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { startEdge } from "../../cli/launcher/local-edge.ts";
import { newToken } from "../../cli/static-token.ts";
import { freePort } from "../../testing/stack/port.ts";
import { ownGroup, startWorker } from "../../testing/stack/worker-process.ts";
import { type SampleArchive, startSampleArchive } from "../../tools/weather/sample-archive/server.ts";
import { startServer } from "../contract/server.ts";
import { currentClient, type McpClient } from "../support/clients.ts";
import { rpc } from "../support/rpc.ts";

const { token, sha256 } = newToken();
const JULY = { latitude: 47.61, longitude: -122.33, year: 2013, month: 7 };
const MAY = { ...JULY, month: 5 };

let archive: SampleArchive;
let dir: string;
beforeAll(async () => {
  archive = await startSampleArchive();
});
afterAll(() => archive[Symbol.asyncDispose]());
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "backup-"));
  return () => rm(dir, { recursive: true, force: true });
});

const OWN = {
  AUTH_MODE: "none",
  RATE_LIMIT: "0",
  WAIT_SECONDS: "45",
  RESONATE_PUBLIC: "1",
  OPERATOR_TOKENS: JSON.stringify([{ name: "ada", sha256 }]),
};
async function start(name: string, bindings: Record<string, string> = {}) {
  const data = join(dir, name);
  await mkdir(data, { recursive: true });
  const port = await freePort();
  return startEdge({ port, data, bindings: { ...OWN, WEATHER_API_URL: archive.url, ...bindings } });
}

async function command(...args: string[]): Promise<string> {
  const env = { OPERATOR_TOKEN: token, RESONATE_URL: "", RESONATE_TOKEN: "" };
  const options = { env, all: true, reject: false } as const;
  const { exitCode, all } = await execa(process.execPath, ["cli/main.ts", ...args], options);
  expect([exitCode, all]).toEqual([0, expect.any(String)]);
  return all;
}

async function gathered(client: McpClient, month: object) {
  const { content } = await client.callTool("start_gathering", month as Record<string, unknown>);
  const { content: ended } = await client.callTool("await_result", {
    job_names: [content.job_name],
    timeout_seconds: 60,
  });
  return ended.results[content.job_name];
}

test("a backup is restored to a local folder, and from there to another deployment; jobs go on, task ids stay", async () => {
  const file = join(dir, "backup.ndjson");
  const call = { name: "timer", arguments: { timer_name: "task", seconds: 3_600 } };
  let july: object;
  let taskId: string;
  {
    await using edge = await start("first");
    await using client = await currentClient.connect(`${edge.url}/mcp`);
    july = await gathered(client, JULY);
    ({ taskId } = (await rpc(`${edge.url}/mcp`, "tools/call", call)).result);
    await client.callTool("set_timer", { timer_name: "soon", seconds: 4 });
    expect(await command("doctor", "--url", edge.url, "--auth", "none")).toMatch(/ok +plan +\d+ rows written/);
    expect(await command("backup", "--url", edge.url, "--out", file)).toMatch(
      /Files of jobs are not in it.*rows are in/s,
    );
    expect((await stat(file)).mode & 0o077).toBe(0);
    // The deployment still serves after the backup.
    expect((await client.callTool("get_timer_status", { timer_name: "soon" })).content).not.toMatchObject({
      error: {},
    });
  }
  await command("restore", "--from", file, "--data", join(dir, "machine"));
  const again = join(dir, "again.ndjson");
  await command("backup", "--data", join(dir, "machine"), "--out", again);
  expect(await readFile(again, "utf8")).toBe(await readFile(file, "utf8"));

  await using edge = await start("second");
  await command("restore", "--from", again, "--url", edge.url);
  await using client = await currentClient.connect(`${edge.url}/mcp`);
  expect(await gathered(client, JULY)).toEqual(july);
  expect((await rpc(`${edge.url}/mcp`, "tasks/get", { taskId })).result.status).toBe("working");
  const { content } = await client.callTool("await_result", { job_names: ["timer_soon"], timeout_seconds: 60 });
  expect(content).toMatchObject({ results: { timer_soon: {} } });
});

test("after a move to another server, results are there, running jobs end there, and timers keep their time", async () => {
  await using server = await startServer();
  const { env: own } = ownGroup();
  const call = { name: "timer", arguments: { timer_name: "task", seconds: 3_600 } };
  await using edge = await start("account", own);
  await using client = await currentClient.connect(`${edge.url}/mcp`);
  const july = await gathered(client, JULY);
  // The archive fails until the move is over, so that the gathering still runs then.
  archive.control.inject({ fault: { kind: "status", status: 503 } });
  const { content: may } = await client.callTool("start_gathering", MAY);
  const { content: timer } = await client.callTool("set_timer", { timer_name: "soon", seconds: 8 });
  const { taskId } = (await rpc(`${edge.url}/mcp`, "tools/call", call)).result;

  const said = await command("move", "--to", server.url, "--url", edge.url);
  const [, settings = ""] = /--secrets-file (\S+)/.exec(said) ?? [];
  const [, TASK_KEY = ""] = /^TASK_KEY=(.*)$/m.exec(await readFile(settings, "utf8")) ?? [];
  // The old deployment starts no more jobs.
  const refused = await client.callTool("set_timer", { timer_name: "late", seconds: 1 });
  expect(refused.isError).toBe(true);

  archive.control.clear();
  const there = { ...own, RESONATE_URL: server.url };
  await using moved = await start("account", { ...there, TASK_KEY });
  await using _worker = await startWorker({ ...there, RESONATE_TOKEN: "", WEATHER_API_URL: archive.url });
  await using after = await currentClient.connect(`${moved.url}/mcp`);
  expect(await gathered(after, JULY)).toEqual(july);
  expect((await after.callTool("get_timer_status", { timer_name: "soon" })).content).toMatchObject({
    fires_at: timer.fires_at,
  });
  const job_names = [may.job_name, timer.job_name];
  const { content } = await after.callTool("await_result", { job_names, timeout_seconds: 60 });
  expect(content).toMatchObject({ errors: {}, running: [] });
  const { content: probed } = await after.callTool("probe_status", { job_names: [timer.job_name] });
  expect(Date.parse(probed.statuses[0].finished_at)).toBeGreaterThanOrEqual(Date.parse(timer.fires_at));
  // Task ids contain the job's start, which the protocol does not carry over. The same call gives a new id for the job.
  expect((await rpc(`${moved.url}/mcp`, "tasks/get", { taskId })).error).toBeDefined();
  const { result } = await rpc(`${moved.url}/mcp`, "tools/call", call);
  expect((await rpc(`${moved.url}/mcp`, "tasks/get", { taskId: result.taskId })).result.status).toBe("working");
});
