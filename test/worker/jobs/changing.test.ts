/** Durable functions that change under running jobs, fail, or return an outdated or invalid result, on a server and a worker. */

import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { activityIn } from "../../../core/jobs/feed/progress-feed.ts";
import type { RemoteStore } from "../../../core/jobs/remote-store.ts";
import { retryJob } from "../../../core/jobs/retry-job.ts";
import { startJob } from "../../../core/jobs/start.ts";
import { viewOf } from "../../../core/jobs/status.ts";
import { ResonateClient } from "../../../core/resonate/connection/client.ts";
import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker, type WorkerProcess } from "../../../testing/stack/worker-process.ts";
import { jobStore } from "../../support/job-store.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";
import {
  eggs,
  forecast,
  halves,
  laterHalves,
  listener,
  order,
  pages,
  resumedTrip,
  strictForecast,
  titles,
  trip,
} from "../scripts/changed/changing.ts";

const { group, namespace, env } = ownGroup();
let resonate: Resonate;
let store: RemoteStore;
let folder: string;
let worker: WorkerProcess;

const start = (code: string) =>
  startWorker(
    { ...resonate.env, ...env, CODE: code, FOLDER: folder, LEASE_SECONDS: "2" },
    { script: "test/worker/scripts/changed/changing-worker.ts" },
  );

beforeAll(async () => {
  [resonate, folder] = await Promise.all([startResonate(), mkdtemp(join(tmpdir(), "changing-"))]);
  const endpoint = { url: resonate.url, token: process.env.RESONATE_TOKEN, group, namespace };
  store = jobStore(endpoint, [
    titles,
    halves,
    order,
    pages,
    eggs,
    listener,
    trip,
    resumedTrip,
    forecast,
    strictForecast,
  ]);
  worker = await start("first");
});
afterAll(async () => {
  await worker?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const ended = async (name: string) =>
  until(
    `${name} to end`,
    async () => {
      const promise = await store.get(name);
      return promise && promise.state !== "pending" ? promise : undefined;
    },
    30_000,
  );

const viewed = async (name: string) => viewOf(name, await store.get(name));

/** The bookings since the last call, their idempotency keys, and the number of their trip. */
async function bookings() {
  const lines = (await readFile(join(folder, "bookings"), "utf8")).trim().split("\n");
  await rm(join(folder, "bookings"));
  const words = lines.map((line) => line.split(" "));
  const numbers = new Set(words.map(([, , number]) => number));
  return { what: words.map(([what]) => what), keys: words.map(([, key]) => key), number: [...numbers].join() };
}

test.each([trip, resumedTrip])("a saga that undid its steps makes all bookings again: $kind", async (job) => {
  await writeFile(join(folder, "no-car"), "");
  const first = await startJob(store, job, { n: 1 }, Date.now());
  expect(await ended(first.name)).toMatchObject({ state: "rejected", value: new Error("there is no car") });
  const before = await bookings();
  expect(before.what).toEqual(["flight", "hotel", "-hotel", "-flight", "closed"]);
  await rm(join(folder, "no-car"));
  const again = await ended((await startJob(store, job, { n: 1 }, Date.now())).name);
  expect(again).toMatchObject({ name: `${first.name}~2`, value: { booked: ["flight", "hotel", "car"] } });
  const after = await bookings();
  expect(after.what).toEqual(["flight", "hotel", "car", "closed"]);
  expect(after.keys.filter((key) => before.keys.includes(key))).toEqual([]);
  const anew = expect.stringContaining(`${first.name} recorded work after a failure`);
  const told = viewOf(again.name, again);
  expect(told).toEqual(expect.objectContaining(job === resumedTrip ? { began_anew: anew } : { status: "complete" }));
  expect(told).not.toHaveProperty("resumed_from");
});

test("an operator's retry of a saga that undid its steps has new random values, and one that resumes keeps them", async () => {
  const { url } = resonate;
  const client = new ResonateClient({ url, token: process.env.RESONATE_TOKEN });
  const retried = async (name: string, isFromStart: boolean, again: string) => {
    expect(await retryJob({ client, namespace }, name, isFromStart)).toBe(`it is started again as ${again}`);
    return ended(again);
  };
  await writeFile(join(folder, "no-car"), "");
  const first = await startJob(store, trip, { n: 2 }, Date.now());
  await ended(first.name);
  const numbers = [(await bookings()).number];
  expect(await retried("trip_2", false, "trip_2~2")).toMatchObject({
    state: "rejected",
    resumption: { anew: expect.any(String) },
  });
  numbers.push((await bookings()).number);
  await rm(join(folder, "no-car"));
  const last = await retried("trip_2~2", true, "trip_2~3");
  expect(last).toMatchObject({ args: { n: 2 }, value: { booked: ["flight", "hotel", "car"] } });
  numbers.push((await bookings()).number);
  expect(new Set(numbers).size).toBe(3);

  await writeFile(join(folder, "broken"), "");
  await ended((await startJob(store, order, { n: 2 }, Date.now())).name);
  await rm(join(folder, "broken"));
  const { value } = await retried("order_2", false, "order_2~2");
  const lines = (await readFile(join(folder, "order 2"), "utf8")).trim().split("\n");
  expect(lines).toEqual(["reserve", "pay", "pay"].map((what) => `${what} ${value}`));
});

test("a start with other arguments under one name reuses no steps, and gets an existing result with a note or not at all", async () => {
  await writeFile(join(folder, "no-mail"), "");
  const [athens, berlin] = ["Athens", "Berlin"].map((city) => ({ name: "today", city }));
  if (!athens || !berlin) throw new Error("two cities");
  for (const job of [forecast, strictForecast]) {
    const first = await startJob(store, job, athens, Date.now());
    expect(await ended(first.name)).toMatchObject({ state: "rejected" });
  }
  await rm(join(folder, "no-mail"));
  const again = await startJob(store, forecast, berlin, Date.now());
  expect(await ended(again.name)).toMatchObject({ value: { city: "Berlin", weather: "sunny in Berlin" } });
  expect((await startJob(store, forecast, { ...berlin }, Date.now())).note).toBeUndefined();
  const found = await startJob(store, forecast, athens, Date.now());
  expect(found).toMatchObject({ name: "forecast_today~2", value: { city: "Berlin" } });
  expect(found.note).toMatch(/^forecast_today~2 was started with other arguments: .*Berlin/);
  const strict = await startJob(store, strictForecast, berlin, Date.now());
  expect(await ended(strict.name)).toMatchObject({ value: { city: "Berlin", weather: "sunny in Berlin" } });
  await expect(startJob(store, strictForecast, athens, Date.now())).rejects.toThrow("with other arguments");
});

test("a failed job is started again after its last good step if its definition says so", async () => {
  await writeFile(join(folder, "broken"), "");
  const first = await startJob(store, halves, { n: 1 }, Date.now());
  expect(await ended(first.name)).toMatchObject({ state: "rejected", value: new Error("the second half is broken") });
  await rm(join(folder, "broken"));
  const again = await startJob(store, halves, { n: 1 }, Date.now());
  expect(again.name).toBe("halves_1~2");
  const resumed = await ended(again.name);
  expect(resumed).toMatchObject({ state: "resolved", value: "whole" });
  expect(viewOf(again.name, resumed)).toMatchObject({ resumed_from: "halves_1" });
  expect(worker.logsOf(again.name)).toContainEqual(expect.objectContaining({ msg: "job resumed", from: "halves_1" }));
  expect(await readFile(join(folder, "first 1"), "utf8")).toBe("x");
});

test("an attempt that resumes draws the random values of the earlier one, also after several attempts", async () => {
  await writeFile(join(folder, "broken"), "");
  const first = await startJob(store, order, { n: 1 }, Date.now());
  await ended(first.name);
  await ended((await startJob(store, order, { n: 1 }, Date.now())).name);
  await rm(join(folder, "broken"));
  const last = await ended((await startJob(store, order, { n: 1 }, Date.now())).name);
  expect(last).toMatchObject({ name: "order_1~3", state: "resolved" });
  const lines = (await readFile(join(folder, "order 1"), "utf8")).trim().split("\n");
  expect(lines).toEqual(["reserve", "pay", "pay", "pay"].map((what) => `${what} ${last.value}`));
  // Who knows the seed knows the values.
  expect(last.resumption).toEqual({ from: "order_1~2" });
});

test("a job of another version repeats all steps, even if its definition says to resume", async () => {
  await writeFile(join(folder, "broken"), "");
  const first = await startJob(store, halves, { n: 2 }, Date.now());
  expect(await ended(first.name)).toMatchObject({ state: "rejected" });
  await rm(join(folder, "broken"));
  const again = await ended((await startJob(store, laterHalves, { n: 2 }, Date.now())).name);
  expect(again).toMatchObject({ name: "halves_2~2", state: "resolved", value: "whole" });
  expect(viewOf(again.name, again)).not.toHaveProperty("resumed_from");
  expect(await readFile(join(folder, "first 2"), "utf8")).toBe("xx");
});

test("a fresh result is returned again, and an expired one is made again", async () => {
  const first = await ended((await startJob(store, pages, { what: "a page" }, Date.now())).name);
  const settledAt = first.settledAt ?? 0;
  expect((await startJob(store, pages, { what: "a page" }, settledAt + 59_000)).name).toBe("pages_a page");
  const later = await startJob(store, pages, { what: "a page" }, settledAt + 60_000);
  expect(later.name).toBe("pages_a page~2");
  expect(await ended(later.name)).toMatchObject({ state: "resolved", value: { text: "a page" } });
});

test.each([
  ["a response", "the function returned a Response: return await value.json() or await value.text()"],
  ["a gap", "the function returned undefined in a list at [0]: return null instead"],
  ["another shape", "the function returned a value that does not fit the output of pages: text: "],
  ["too much", 'step "read" returned 1100002 bytes of JSON; up to 1000000 are stored. Put the data where it belongs'],
])(
  "a value that cannot be stored fails the job with an error that says what to return instead: %s",
  async (what, words) => {
    const { name } = await startJob(store, pages, { what }, Date.now());
    const { state, value } = await ended(name);
    expect([state, (value as Error).message]).toEqual(["rejected", expect.stringContaining(words)]);
  },
);

test("a function's signal does not fire when its job sleeps or ends, and fires once when it is cancelled", async () => {
  const heard = (n: number) => readFile(join(folder, `heard ${n}`), "utf8").catch(() => "");
  const [quiet, cancelled] = await Promise.all([1, 2].map((n) => startJob(store, listener, { n }, Date.now())));
  expect(await ended(quiet?.name ?? "")).toMatchObject({ value: "nothing was heard" });
  await until("it to wait", async () => existsSync(join(folder, "waits")) || undefined);
  await store.cancel(cancelled?.name ?? "");
  await until("it to hear of it", async () => (await heard(2)) || undefined, 30_000);
  const isOver = async () => (await viewed(cancelled?.name ?? "")).cleanup !== "running" || undefined;
  await until("its clean-up to end", isOver, 30_000);
  expect([await heard(1), await heard(2)]).toEqual(["", "x"]);
});

test("code that does not fit the journal visibly blocks a job until fitting code is back", async () => {
  const promise = await startJob(store, titles, { n: 1 }, Date.now());
  const { name, id } = promise;
  const says = async () => activityIn((await store.feeds.newest(promise)).entry, Date.now()) ?? "";
  await resonate.asleep(id);
  const wrong = await startJob(store, eggs, { n: 1 }, Date.now());
  expect(await ended(wrong.name)).toMatchObject({ value: new Error("11 eggs") });
  await worker[Symbol.asyncDispose]();
  worker = await start("changed");
  // A new generation takes nothing over from the wrong step, although the definition has the same version.
  const mended = await startJob(store, eggs, { n: 1 }, Date.now());
  expect(await ended(mended.name)).toMatchObject({ value: { count: 12 } });
  await until("it to be blocked", async () => (await says()).startsWith("blocked") || undefined, 60_000);
  expect(await says()).toBe('blocked: step "title" was recorded here, "summary" came');
  await worker[Symbol.asyncDispose]();
  worker = await start("first");
  await writeFile(join(folder, "go-on"), "");
  await until("it to end", async () => (await store.get(name))?.state === "resolved" || undefined, 90_000);
  expect(await ended(name)).toMatchObject({ value: { text: "as it was" } });
});
