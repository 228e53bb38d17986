// One account without other processes: edge, Resonate object and runner in one workerd, as wrangler.toml configures them.

import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type EdgeProcess, startEdge } from "../../cli/launcher/local-edge.ts";
import { newToken } from "../../cli/static-token.ts";
import { freePort } from "../../testing/stack/port.ts";
import { until } from "../../testing/stack/program.ts";
import { startWorker } from "../../testing/stack/worker-process.ts";
import { type SampleArchive, startSampleArchive } from "../../tools/weather/sample-archive/server.ts";
import { currentClient, type McpClient } from "../support/clients.ts";
import { rpc } from "../support/rpc.ts";

let archive: SampleArchive;
let data: string;
let port: number;
beforeAll(async () => {
  archive = await startSampleArchive();
});
afterAll(() => archive[Symbol.asyncDispose]());
beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), "account-"));
  port = await freePort();
  return () => rm(data, { recursive: true, force: true });
});

const start = (bindings: Record<string, string> = {}): Promise<EdgeProcess> =>
  startEdge({
    port,
    data,
    bindings: { AUTH_MODE: "none", RATE_LIMIT: "0", WAIT_SECONDS: "45", WEATHER_API_URL: archive.url, ...bindings },
  });
const mcp = (edge: EdgeProcess) => `${edge.url}/mcp`;
const connect = (edge: EdgeProcess): Promise<McpClient> => currentClient.connect(mcp(edge));

test("a job that waits, one that fetches and one that starts others run to their end", async () => {
  await using edge = await start();
  await using client = await connect(edge);
  const { content: timer } = await client.callTool("set_timer", { timer_name: "tea", seconds: 2 });
  const { content: month } = await client.callTool("start_gathering", {
    latitude: 47.61,
    longitude: -122.33,
    year: 2013,
    month: 5,
  });
  const job_names = [timer.job_name, month.job_name];
  const { content } = await client.callTool("await_result", { job_names, timeout_seconds: 60 });
  expect(content).toMatchObject({ errors: {}, running: [] });
  expect(Object.keys(content.results).sort()).toEqual(job_names.toSorted());
  const where = { latitude: 47.61, longitude: -122.33 };
  const range = await client.callTool("weather_range", { ...where, from: "2012-01", to: "2012-06" });
  expect(range.content).toMatchObject({ status: "complete" });
});

test("the object makes the key of task ids and stores it", async () => {
  const call = { name: "timer", arguments: { timer_name: "task", seconds: 3_600 } };
  let taskId: string;
  {
    await using edge = await start();
    const { result } = await rpc(mcp(edge), "tools/call", call);
    expect(result.resultType).toBe("task");
    taskId = result.taskId;
  }
  await using edge = await start();
  const { result } = await rpc(mcp(edge), "tasks/get", { taskId });
  expect(result.status).toBe("working");
});

test("no job is lost when the account is killed at any moment", async () => {
  const kills = fc.sample(fc.integer({ min: 1, max: 30 }), 3);
  const names: string[] = [];
  for (const [round, answered] of [...kills, 8].entries()) {
    const edge = await start();
    const client = await connect(edge);
    const calls = Array.from({ length: answered }, (_, n) =>
      n % 2
        ? client.callTool("set_timer", { timer_name: `${round} ${n}`, seconds: 1 + (n % 3) })
        : client.callTool("start_gathering", {
            latitude: 47.61,
            longitude: -122 - n / 100,
            year: 2012 + round,
            month: 1,
          }),
    );
    for (const { content } of await Promise.all(calls)) names.push(content.job_name);
    edge.process.kill("SIGKILL");
    await edge.process.exited;
    await client.close().catch(() => {});
  }
  await using edge = await start();
  await using client = await connect(edge);
  await until(
    "every job to end",
    async () => {
      const { content } = await client.callTool("await_result", { job_names: names, timeout_seconds: 20 });
      expect(content.errors).toEqual({});
      return content.running.length === 0;
    },
    80_000,
  );
});

test("with RUNS_IN=container, jobs wait for the container's worker, and no runner takes them", async () => {
  const { token, sha256 } = newToken();
  const open = { RESONATE_PUBLIC: "1", RESONATE_TOKENS: JSON.stringify([{ name: "container", sha256 }]) };
  await using edge = await start({ ...open, RUNS_IN: "container" });
  await using client = await connect(edge);
  const { content } = await client.callTool("set_timer", { timer_name: "patient", seconds: 1 });
  await client.callTool("await_result", { job_names: [content.job_name], timeout_seconds: 2 });
  const address = { RESONATE_URL: `${edge.url}/resonate`, WEATHER_API_URL: archive.url };
  await using worker = await startWorker({ ...address, RESONATE_TOKEN: token });
  await client.callTool("await_result", { job_names: [content.job_name], timeout_seconds: 60 });
  expect(await worker.waitForLog(content.job_name, "job done")).not.toEqual([]);
});

test("a worker elsewhere runs jobs through the edge with its token, and no path escapes the worker's routes", async () => {
  const { token, sha256 } = newToken();
  const open = { RESONATE_PUBLIC: "1", RESONATE_TOKENS: JSON.stringify([{ name: "machine", sha256 }]) };
  await using edge = await start(open);
  const search = { kind: "promise.search", head: { corrId: "1", version: "2025-01-15" }, data: { id: "*", limit: 1 } };
  const asked = (path: string, method = "GET") =>
    new Promise<string>((resolve, reject) => {
      // `request` sends the path unchanged, while `fetch` would resolve the dots.
      const req = request({ host: "127.0.0.1", port, path, method }, (res) => {
        res.setEncoding("utf8").once("data", (text: string) => {
          resolve(`${path} ${res.statusCode} ${text}`);
          req.destroy();
        });
        res.on("end", () => resolve(`${path} ${res.statusCode}`));
      });
      req.on("error", reject).end(method === "POST" ? JSON.stringify(search) : undefined);
    });
  for (const up of ["..", "%2e%2e", "%2E.", ".%2e", "%252e%252e", "..;"]) {
    for (const slash of ["/", "//", "\\", "%2f", "%5c"]) {
      for (const path of ["key", "usage", "poll/edge/1", "public/usage"]) {
        expect(await asked(`/resonate/${up}${slash}${path}`)).toMatch(/ (400|401|404)\b/);
      }
      expect(await asked(`/resonate/${up}${slash}`, "POST")).toMatch(/ (400|401|404|405)\b/);
    }
  }

  const address = { RESONATE_URL: `${edge.url}/resonate`, WEATHER_API_URL: archive.url };
  expect((await fetch(`${address.RESONATE_URL}/key`)).status).toBe(404);
  expect((await fetch(`${address.RESONATE_URL}/../key`)).status).toBe(404);
  expect((await fetch(`${address.RESONATE_URL}/poll/workers/1`)).status).toBe(401);
  await using worker = await startWorker({ ...address, RESONATE_TOKEN: token });
  await using client = await connect(edge);
  const { content } = await client.callTool("set_timer", { timer_name: "elsewhere", seconds: 1 });
  await client.callTool("await_result", { job_names: [content.job_name], timeout_seconds: 60 });
  expect(await worker.waitForLog(content.job_name, "job done")).not.toEqual([]);
});
