/** The limit for an upstream holds for all workers together, even when one of them dies. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { startSampleArchive } from "../../../tools/weather/sample-archive/server.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";

const MAX_CONCURRENT = 3;

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

test("three workers together keep to the limit of requests, and one that dies does not delay the others for long", async () => {
  await using archive = await startSampleArchive();
  const { group, namespace, env } = ownGroup();
  const settings = {
    ...resonate.env,
    ...env,
    WEATHER_API_URL: archive.url,
    UPSTREAM_CONCURRENCY: String(MAX_CONCURRENT),
    UPSTREAM_TIMEOUT_SECONDS: "3",
    LEASE_SECONDS: "3",
  };
  const start = () => startWorker(settings);
  await using _first = await start();
  await using _second = await start();
  await using third = await start();
  const gather = async (latitude: number, count: number) => {
    const ids = Array.from({ length: count }, (_, i) => `${namespace}weather_data_${latitude}_-122.3_2013_${i + 1}`);
    for (const [i, id] of ids.entries()) {
      const args = { latitude, longitude: -122.3, year: 2013, month: i + 1 };
      await resonate.start({ id, func: "weather_data", group, args, timeoutAt: Date.now() + 600_000 });
    }
    return async () => {
      for (const id of ids) expect((await resonate.settled(id, 60_000)).state).toBe("resolved");
    };
  };
  archive.control.inject({ fault: { kind: "slow", ms: 150 } });
  await (
    await gather(47.6, 12)
  )();
  await (
    await gather(47.7, 12)
  )();
  expect(archive.control.requests.total).toBe(24);
  expect(archive.control.requests.maxConcurrent).toBeLessThanOrEqual(MAX_CONCURRENT);

  // The upstream slots that a worker held when it died become free by themselves.
  archive.control.clear();
  archive.control.inject({ fault: { kind: "hang" }, times: MAX_CONCURRENT });
  const ended = await gather(47.8, 12);
  await until("slots to be reserved", () => archive.control.requests.total >= 24 + MAX_CONCURRENT || undefined);
  third.signal("SIGKILL");
  await ended();
  expect(archive.control.requests.maxConcurrent).toBeLessThanOrEqual(MAX_CONCURRENT);
});
