/** Durable functions written as if they ran only once, on a worker that is killed. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Job } from "../../../core/author/job.ts";
import { partialOf } from "../../../core/jobs/feed/partial.ts";
import type { RemoteStore } from "../../../core/jobs/remote-store.ts";
import { endpointOf } from "../../../core/resonate/connection/endpoint.ts";
import { serveHttp } from "../../../testing/stack/http-server.ts";
import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker, type WorkerProcess } from "../../../testing/stack/worker-process.ts";
import { jobStore } from "../../support/job-store.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";
import { collecting, counting, forgetful, lasting, order, request, telling } from "../scripts/guarded.ts";

const { namespace, env } = ownGroup();
let resonate: Resonate;
let store: RemoteStore;
let worker: WorkerProcess;
const launch = async () => {
  worker = await startWorker(
    { ...resonate.env, ...env, LEASE_SECONDS: "1" },
    { script: "test/worker/scripts/guarded-worker.ts" },
  );
};
beforeAll(async () => {
  resonate = await startResonate();
  const endpoint = endpointOf({ RESONATE_URL: resonate.url, ...resonate.env, ...env });
  store = jobStore(endpoint, [order, lasting, forgetful, request, telling, collecting, counting] as Job[]);
  await launch();
});
afterAll(async () => {
  await worker?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
});

/** Starts a job, and resolves with its final state and its value or error message. */
async function endOf<Args>(job: Job<Args>, args: Args) {
  await store.create(job, await job.name(args), args, Date.now());
  const { state, value } = await resonate.settled(namespace + (await job.name(args)), 30_000);
  return { state, value: (value.data as { message?: string }).message ?? value.data };
}

describe.concurrent("outside of steps", () => {
  test("a random id made in the function's own code is refused, and the error names the call and its line", async () => {
    const end = await endOf(order, { name: "natural", isNatural: true, pause: 100 });
    expect(end).toEqual({
      state: "rejected",
      value: expect.stringMatching(
        /^randomUUID\(\) of node:crypto was called outside of a step at scripts\/guarded-worker\.ts:\d+\. Write ctx\.uuid\(\)/,
      ),
    });
  });

  test("a loop that reads the process's clock is refused, and one that reads ctx.now() ends", async () => {
    const natural = await endOf(lasting, { name: "natural", isNatural: true, pause: 0 });
    expect(natural).toEqual({ state: "rejected", value: expect.stringContaining("Write ctx.now()") });
    const written = await endOf(lasting, { name: "written", isNatural: false, pause: 0 });
    // Under load the sleeps take longer.
    expect(written).toEqual({
      state: "resolved",
      value: { steps: expect.toSatisfy((steps) => steps >= 1 && steps <= 3) },
    });
  });

  test("a request is refused before it is sent", async () => {
    const seen: unknown[] = [];
    await using site = await serveHttp((incoming, response) => {
      seen.push(incoming.url);
      response.end();
    });
    const end = await endOf(request, { name: "void", url: `${site.url}/` });
    expect(end).toEqual({
      state: "rejected",
      value: expect.stringContaining("fetch was called outside of a step at "),
    });
    expect(seen).toEqual([]);
  });

  test("steps that fail in a forEach, which nothing awaits, fail the job", async () => {
    const end = await endOf(forgetful, { name: "forgets", isNatural: true, pause: 0 });
    expect(end).toEqual({
      state: "rejected",
      value: expect.stringMatching(/[ab] is gone\. Each call of ctx is awaited/),
    });
  });
});

describe.concurrent("a change of the function's variables", () => {
  test("by a step is refused, and by the function it is kept", async () => {
    const natural = await endOf(collecting, { name: "natural", isNatural: true, pause: 100 });
    expect(natural).toEqual({
      state: "rejected",
      value: expect.stringMatching(/^step "send#3" at scripts\/guarded-worker\.ts:\d+ changes failed\[0\], a variable/),
    });
    const written = await endOf(collecting, { name: "written", isNatural: false, pause: 100 });
    expect(written).toEqual({ state: "resolved", value: { failed: [3], sent: 3 } });
  });

  test("by a check of an until, which would never end, is refused", async () => {
    const counted = await endOf(counting, { name: "counted", isNatural: true, pause: 0 });
    const value = expect.stringMatching(
      /^until "third look" at scripts\/guarded-worker\.ts:\d+ changes looks, a variable/,
    );
    expect(counted).toEqual({ state: "rejected", value });
  });
});

test("ids and random numbers from ctx are the same after the worker is killed, and differ from job to job", async () => {
  const start = async (name: string) => {
    const args = { name, isNatural: false, pause: 3_000 };
    await store.create(order, await order.name(args), args, Date.now());
    return namespace + (await order.name(args));
  };
  const ids = await Promise.all(["one", "two"].map(start));
  const told = { name: "told", isNatural: false, pause: 3_000 };
  await store.create(telling, await telling.name(told), told, Date.now());
  const partial = async () =>
    (await partialOf(store, namespace + (await telling.name(told)), { limit: 1_000 }))?.values;
  const first = await until("a partial result", partial);
  await resonate.asleep(ids);
  await worker[Symbol.asyncDispose]();
  await launch();
  const results = await Promise.all(ids.map(async (id) => (await resonate.settled(id, 45_000)).value.data));
  for (const { sent } of results) expect(sent[1].split("order=")[1]).toBe(sent[0].split("order=")[1]);
  expect(new Set(results.flatMap(({ sent, random }) => [sent[0], random])).size).toBe(4);
  expect(first).toMatchObject([{ n: 1 }]);
  await resonate.settled(namespace + (await telling.name(told)), 45_000);
  expect(await partial()).toEqual([...(first ?? []), { n: 2, id: expect.any(String) }]);
});
