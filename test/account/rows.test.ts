// A job's cost in rows of the Resonate object, as the platform counts and charges them. docs/deploy.md has the numbers.

import { afterAll, beforeAll, expect, test } from "vitest";
import { run, until } from "../../testing/stack/program.ts";
import { startWorker } from "../../testing/stack/worker-process.ts";
import { type SampleArchive, startSampleArchive } from "../../tools/weather/sample-archive/server.ts";
import { connectTo, promise } from "../contract/server.ts";

let url: string;
let archive: SampleArchive;
const cleanup = new AsyncDisposableStack();
beforeAll(async () => {
  const program = cleanup.use(run("test/support/object/object-process.ts", { args: ["--port", "0", "--memory"] }));
  const ready = await until("the object", () => program.logs().find(({ msg }) => msg === "ready"));
  url = String(ready.url);
  archive = cleanup.use(await startSampleArchive());
  cleanup.use(await startWorker({ RESONATE_URL: url, RESONATE_TOKEN: "", WEATHER_API_URL: archive.url }));
});
afterAll(() => cleanup.disposeAsync());

const rows = async (): Promise<{ read: number; written: number }> => (await (await fetch(`${url}/usage`)).json()).rows;

/** Runs `count` jobs to their end. Returns the average number of rows that a job read and wrote. */
async function each(count: number, func: string, jobs: (n: number) => { id: string; args: object }) {
  const server = connectTo(url, async () => {});
  const before = await rows();
  for (let n = 0; n < count; n++) {
    const { id, args } = jobs(n);
    const data = Buffer.from(JSON.stringify({ func, args: [args], version: 1 })).toString("base64");
    const created = { ...promise(id, { group: "workers", timeoutAt: Date.now() + 3_600_000 }), param: { data } };
    await server.call("promise.create", created);
    await until(
      `${id} to end`,
      async () => (await server.call("promise.get", { id })).data.promise.state === "resolved",
      60_000,
    );
  }
  const { read, written } = await rows();
  return { read: (read - before.read) / count, written: (written - before.written) / count };
}

test("a first wait for a pending promise writes a row and its index, and any other wait writes nothing", async () => {
  const server = connectTo(url, async () => {});
  const ids = Array.from({ length: 20 }, (_, n) => `waited_${n}`);
  const address = "poll://uni@edge/waiter";
  for (const id of ids) await server.call("promise.create", promise(id, { timeoutAt: Date.now() + 3_600_000 }));
  const wait = async () => {
    const before = await rows();
    for (const awaited of ids) await server.call("promise.register_listener", { awaited, address });
    return ((await rows()).written - before.written) / ids.length;
  };
  expect(await wait()).toBeLessThanOrEqual(2);
  expect(await wait()).toBe(0);
  for (const id of ids) await server.call("promise.settle", { id, state: "resolved", value: {} });
  expect(await wait()).toBe(0);
});

test("a wait for many promises at once writes nothing", async () => {
  const server = connectTo(url, async () => {});
  const ids = Array.from({ length: 100 }, (_, n) => `together_${n}`);
  for (const id of ids) await server.call("promise.create", promise(id, { timeoutAt: Date.now() + 3_600_000 }));
  const before = await rows();
  await server.call("promise.read" as "promise.get", { ids, address: "poll://uni@edge/waiter" } as never);
  expect((await rows()).written - before.written).toBe(0);
});

test("a gathering and a timer do not write more rows than documented", async () => {
  const month = await each(8, "weather_data", (n) => ({
    id: `weather_data_47.61_-122.3${n + 1}_2013_5`,
    args: { latitude: 47.61, longitude: Number(`-122.3${n + 1}`), year: 2013, month: 5 },
  }));
  const timer = await each(10, "timer", (n) => ({
    id: `timer_${n}`,
    args: { timer_name: `${n}`, fires_at: new Date(Date.now() + 500).toISOString() },
  }));
  expect(month.written).toBeGreaterThan(5);
  expect(month.written).toBeLessThanOrEqual(32);
  expect(timer.written).toBeLessThanOrEqual(44);
});
