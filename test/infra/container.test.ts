// A worker in a container of the account is woken when jobs wait, and sleeps when there are none. The test replaces the
// platform's container engine.

import { expect, test } from "vitest";
import { startEdge } from "../../cli/launcher/local-edge.ts";
import { isIdle } from "../../infra/container/wake.ts";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { until } from "../../testing/stack/program.ts";
import { startWorker, type WorkerProcess } from "../../testing/stack/worker-process.ts";
import { currentClient } from "../support/clients.ts";

/** Stands for the platform's containers: a request starts the named one's worker if it does not run, which then answers. */
async function startEngine(env: () => Record<string, string>) {
  const workers = new Map<string, Promise<WorkerProcess>>();
  const engine = { workers, visits: 0 };
  const server = await serveHttp(async ({ url: name = "" }, answer) => {
    engine.visits += 1;
    if (!workers.has(name)) workers.set(name, startWorker(env()));
    answer.end(await (await fetch((await workers.get(name))?.healthUrl ?? "")).text());
  });
  return Object.assign(engine, {
    url: server.url,
    async sleep() {
      for (const worker of workers.values()) {
        (await worker).signal("SIGTERM");
        await (
          await worker
        ).exited;
      }
      workers.clear();
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      for (const worker of workers.values()) await (await worker)[Symbol.asyncDispose]();
    },
  });
}

/** Starts one account with edge, Resonate object and container engine. */
async function startAccount(more: Record<string, string> = {}) {
  await using cleanup = new AsyncDisposableStack();
  let url = "";
  const engine = cleanup.use(await startEngine(() => ({ RESONATE_URL: `${url}/container`, RESONATE_TOKEN: "" })));
  const bindings = { AUTH_MODE: "none", RATE_LIMIT: "0", WAIT_SECONDS: "45", RUNS_IN: "container" };
  const options = {
    port: 0,
    entry: "test/infra/container/host.ts",
    bindings: { ...bindings, INSTANCES: "1", ENGINE: engine.url, ...more },
  };
  url = cleanup.use(await startEdge(options)).url;
  const all = cleanup.move();
  return { url, engine, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

test("a job without a running worker wakes the first container at once and runs in it; the cron trigger starts the other", async () => {
  await using account = await startAccount({ INSTANCES: "2" });
  const { url, engine } = account;
  await using client = await currentClient.connect(`${url}/mcp`);
  expect(engine.visits).toBe(0);
  const { content } = await client.callTool("timer", { timer_name: "woken", seconds: 1 });
  expect(content).toMatchObject({ status: "complete" });
  // A job wakes the container once, and so do several jobs that come while it starts.
  expect(engine.visits).toBe(1);
  await engine.sleep();
  const jobs = ["a", "b", "c"].map((timer_name) => client.callTool("timer", { timer_name, seconds: 1 }));
  for (const { content } of await Promise.all(jobs)) expect(content).toMatchObject({ status: "complete" });
  expect(engine.visits).toBe(2);
  expect([...engine.workers.keys()]).toEqual(["/worker-1"]);
  await fetch(`${url}/cron`);
  expect([...engine.workers.keys()]).toEqual(["/worker-1", "/worker-2"]);
});

test("without that binding, the cron trigger wakes the container if jobs wait, which reaches the server without a secret", async () => {
  await using account = await startAccount({ UNBOUND: "1" });
  const { url, engine } = account;
  const cron = async () => expect((await fetch(`${url}/cron`)).status).toBe(200);
  expect((await fetch(`${url}/container/key`)).status).toBe(404);

  await using client = await currentClient.connect(`${url}/mcp`);
  await cron();
  expect(engine.visits).toBe(0);
  const { content: first } = await client.callTool("set_timer", { timer_name: "first", seconds: 1 });
  await cron();
  expect(engine.visits).toBe(1);
  const results = async (job: string) =>
    (await client.callTool("await_result", { job_names: [job], timeout_seconds: 40 })).content.results;
  expect(await results(first.job_name)).toEqual({ timer_first: "complete" });
  // A container that is awake gets no request, so that an idle one can fall asleep, even while a job sleeps.
  const { content: second } = await client.callTool("set_timer", { timer_name: "second", seconds: 3 });
  const worker = await engine.workers.get("/worker-1");
  await worker?.waitForLog(second.job_name, "job started");
  await cron();
  expect(engine.visits).toBe(1);
  await until("the worker to be idle", () => isIdle(fetch(worker?.healthUrl ?? "")));
  await engine.sleep();
  await until("the job to wait", async () => {
    await cron();
    return engine.visits === 2;
  });
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(second.fires_at));
  expect(await results(second.job_name)).toEqual({ timer_second: "complete" });
});

test("a worker is idle if it executes nothing or does not answer", async () => {
  const health = (running: number) => Promise.resolve(Response.json({ status: "ok", connected: true, running }));
  expect([await isIdle(health(2)), await isIdle(health(0)), await isIdle(Promise.reject(new Error("gone")))]).toEqual([
    false,
    true,
    true,
  ]);
});
