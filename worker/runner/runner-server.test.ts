import { text } from "node:stream/consumers";
import pino from "pino";
import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { defineJob, implement } from "../../core/index.ts";
import { RemoteStore } from "../../core/jobs/remote-store.ts";
import { ResonateClient } from "../../core/store/connection/client.ts";
import { endpointOf } from "../../core/store/connection/endpoint.ts";
import { startResonate } from "../../server/node/http.ts";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { RunnerServer } from "./runner-server.ts";

const cleanup: (() => unknown)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const end of cleanup.splice(0)) await end();
});

const tea = defineJob({ kind: "tea", args: z.object({}), id: () => "x" });

test("a runner begins no step after its lease has lapsed during the look for a pause", async () => {
  const server = await startResonate({ port: 0, data: undefined, token: undefined, log: pino({ level: "silent" }) });
  const client = new ResonateClient({ url: server.url });
  const endpoint = { RESONATE_URL: server.url, RESONATE_GROUP: "workers", RESONATE_NAMESPACE: "" };
  const { id } = await new RemoteStore(endpointOf(endpoint), [tea]).create(tea, "tea_x", {}, Date.now());
  vi.useFakeTimers({ toFake: ["Date"] });

  /** Lets the runner's lease lapse, and gives the task to another worker. */
  const lapse = async () => {
    vi.setSystemTime(Date.now() + 20_000);
    const take = { id, version: 1, pid: "another", ttl: 60_000 };
    await vi.waitUntil(async () => (await client.send("task.acquire", take)).status === 200);
  };
  let lapsing: Promise<void> | undefined;
  const between = await serveHttp(async (req, res) => {
    const body = await text(req);
    if (body.includes("paused:")) {
      lapsing ??= lapse();
      await lapsing;
    }
    const answer = await fetch(server.url, { method: "POST", body });
    res.writeHead(answer.status).end(await answer.text());
  });
  cleanup.push(
    () => between[Symbol.asyncDispose](),
    () => server.close(),
  );

  let steps = 0;
  const brew = async () => {
    steps += 1;
  };
  const run = implement(tea, (ctx) => ctx.step("brew", brew));
  const runner = new RunnerServer({ RESONATE_URL: between.url, LOG_LEVEL: "silent" }, [run]);
  const promise = await client.call({ kind: "promise.get", data: { id } });
  const body = JSON.stringify({ task: { id, version: 0 }, promise });
  await runner.fetch(new Request("http://runner/", { method: "POST", body }));
  expect(lapsing).toBeDefined();
  expect(steps).toBe(0);
});
