import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import pino from "pino";
import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { type Context, defineJob, implement } from "../../core/index.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { endpointOf } from "../../core/resonate/connection/endpoint.ts";
import { startResonate } from "../../server/node/http.ts";
import { jobStore } from "../../test/support/job-store.ts";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { RunnerServer } from "./runner-server.ts";

const cleanup: (() => unknown)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const end of cleanup.splice(0)) await end();
});

const tea = defineJob({ kind: "tea", args: z.object({}), id: () => "x" });

/** A job that a runner may run, and a client of the server. Before the server gets a request of the runner, `meet` is awaited. */
async function scene(run: (ctx: Context) => Promise<unknown>) {
  const server = await startResonate({ port: 0, data: undefined, token: undefined, log: pino({ level: "silent" }) });
  const client = new ResonateClient({ url: server.url });
  const endpoint = { RESONATE_URL: server.url, RESONATE_GROUP: "workers", RESONATE_NAMESPACE: "" };
  const { id } = await jobStore(endpointOf(endpoint), [tea]).create(tea, "tea_x", {}, Date.now());
  const between = {
    /** Resolves with a status to refuse the request with. */
    meet: async (_body: string): Promise<number | undefined> => undefined,
  };
  const proxy = await serveHttp(async (req, res) => {
    const body = await text(req);
    const status = await between.meet(body);
    if (status !== undefined) return void res.writeHead(status).end();
    const answer = await fetch(server.url, { method: "POST", body });
    res.writeHead(answer.status).end(await answer.text());
  });
  cleanup.push(
    () => proxy[Symbol.asyncDispose](),
    () => server.close(),
  );
  const runner = new RunnerServer({ RESONATE_URL: proxy.url, LOG_LEVEL: "silent" }, [implement(tea, run)]);
  const begin = async () => {
    const promise = await client.call({ kind: "promise.get", data: { id } });
    const body = JSON.stringify({ task: { id, version: 0 }, promise });
    await runner.fetch(new Request("http://runner/", { method: "POST", body }));
  };
  return { id, client, between, begin };
}

test("a runner begins no step after its lease has lapsed during the look for a pause", async () => {
  let steps = 0;
  const brew = async () => {
    steps += 1;
  };
  const { id, client, between, begin } = await scene((ctx) => ctx.step("brew", brew));
  vi.useFakeTimers({ toFake: ["Date"] });
  /** Lets the runner's lease lapse, and gives the task to another worker. */
  const lapse = async () => {
    vi.setSystemTime(Date.now() + 20_000);
    const take = { id, version: 1, pid: "another", ttl: 60_000 };
    await vi.waitUntil(async () => (await client.send("task.acquire", take)).status === 200);
  };
  let lapsing: Promise<void> | undefined;
  between.meet = async (body) => {
    if (!body.includes("paused:")) return undefined;
    lapsing ??= lapse();
    await lapsing;
    return undefined;
  };
  await begin();
  expect(lapsing).toBeDefined();
  expect(steps).toBe(0);
});

test("a job whose question cannot be read for some seconds goes on with its step, and then waits for the answer", async () => {
  const question = { message: "Sugar?", requestedSchema: { type: "object" as const, properties: {} } };
  const { id, client, between, begin } = await scene((ctx) =>
    Promise.all([ctx.step("brew", () => delay(4_000)), ctx.ask("sugar", question)]),
  );
  let end = Number.POSITIVE_INFINITY;
  between.meet = async (body) => {
    if (!body.includes('"promise.get"') || !body.includes(`"${id}:e`)) return undefined;
    end = Math.min(end, performance.now() + 2_500);
    return performance.now() < end ? 503 : undefined;
  };
  await begin();
  expect(end).toBeLessThan(performance.now());
  expect((await client.send("task.get", { id })).data).toMatchObject({ task: { state: "suspended" } });
});
