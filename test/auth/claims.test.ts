/** Concurrent starts and cancels of a shared job, interleaved at every call to the Resonate server. */

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { callerOf } from "../../core/author/caller.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import { startJob } from "../../core/jobs/start.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { ownGroup } from "../../testing/stack/worker-process.ts";
import { type Month as WeatherMonth, month as weather } from "../../tools/weather/month.ts";
import { jobStore } from "../support/job-store.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

const { group, namespace } = ownGroup();

/** A client that pauses before its `n`th call, counted from 0, until `resumed`. A negative `n` never pauses. */
class PausingClient extends ResonateClient {
  calls = 0;
  readonly paused = Promise.withResolvers<void>();
  readonly resumed = Promise.withResolvers<void>();
  #left: number;

  constructor(n: number) {
    super({ url: resonate.url, token: process.env.RESONATE_TOKEN });
    this.#left = n;
  }

  override async call(...call: Parameters<ResonateClient["call"]>) {
    this.calls += 1;
    if (this.#left-- === 0) {
      this.paused.resolve();
      await this.resumed.promise;
    }
    return super.call(...call);
  }
}

async function storeOf(name: string, client = new PausingClient(-1)): Promise<RemoteStore> {
  const { key } = await callerOf(name);
  const endpoint = { url: resonate.url, token: process.env.RESONATE_TOKEN, group, namespace };
  return jobStore(endpoint, [weather], { by: { key, requestId: randomUUID() }, client });
}

let months = 0;
const nextMonth = (): WeatherMonth => ({ latitude: 0, longitude: ++months / 100, year: 2013, month: 5 });

const start = async (name: string, month: WeatherMonth, client?: PausingClient) =>
  (await startJob(await storeOf(name, client), weather, month, Date.now())).name;
const cancel = async (name: string, job: string, client?: PausingClient) =>
  (await (await storeOf(name, client)).cancel(job))?.promise;
const stateOf = async (job: string) => (await (await storeOf("anyone")).get(job))?.state;

/**
 * Runs `paused` once for each of its calls, paused before that call while `meanwhile` runs to its end, and then `check` with
 * both results. Returns how many calls `paused` makes.
 */
async function atEveryCall<A, B>(
  prepare: (month: WeatherMonth) => Promise<unknown>,
  paused: (month: WeatherMonth, client: PausingClient) => Promise<A>,
  meanwhile: (month: WeatherMonth) => Promise<B>,
  check: (month: WeatherMonth, a: A, b: B) => Promise<void>,
): Promise<number> {
  for (let n = 0; ; n++) {
    const month = nextMonth();
    await prepare(month);
    const client = new PausingClient(n);
    const running = paused(month, client);
    const isPaused = await Promise.race([running.then(() => false), client.paused.promise.then(() => true)]);
    const b = await meanwhile(month);
    client.resumed.resolve();
    await check(month, await running, b);
    if (!isPaused) return n;
  }
}

const told = async (_month: WeatherMonth, _outcome: unknown, job: string) => expect(await stateOf(job)).toBe("pending");

test("a caller who starts in the middle of the only claimant's cancel gets a running job", async () => {
  const calls = await atEveryCall(
    (month) => start("ada", month),
    async (month, client) => cancel("ada", await weather.name(month), client),
    (month) => start("bob", month),
    told,
  );
  expect(calls).toBe(5);
});

test("a caller whose start is interrupted by the only claimant's cancel gets a running job", async () => {
  const calls = await atEveryCall(
    (month) => start("ada", month),
    (month, client) => start("bob", month, client),
    async (month) => cancel("ada", await weather.name(month)),
    async (month, job) => told(month, undefined, job),
  );
  expect(calls).toBeGreaterThan(2);
});

test("a caller who starts in the middle of the last claimant's cancel gets a running job", async () => {
  const calls = await atEveryCall(
    async (month) => {
      for (const name of ["ada", "bob", "cy"]) await start(name, month);
      for (const name of ["ada", "bob"]) await cancel(name, await weather.name(month));
    },
    async (month, client) => cancel("cy", await weather.name(month), client),
    (month) => start("ada", month),
    told,
  );
  expect(calls).toBe(9);
});

test.each([
  ["ada", "bob"],
  ["bob", "ada"],
  ["bob", "cy"],
] as const)("when all claimants cancel, the last one stops the job: %s while %s does", async (one, other) => {
  const all = ["ada", "bob", "cy"];
  const calls = await atEveryCall(
    async (month) => {
      for (const name of all) await start(name, month);
      for (const name of all) if (name !== one && name !== other) await cancel(name, await weather.name(month));
    },
    async (month, client) => cancel(one, await weather.name(month), client),
    async (month) => cancel(other, await weather.name(month)),
    async (month) => expect(await stateOf(await weather.name(month))).toBe("rejected_canceled"),
  );
  expect(calls).toBeGreaterThanOrEqual(3);
});

test("when two claimants cancel, start again and cancel concurrently, the last one stops the job", async () => {
  const calls = await atEveryCall(
    async (month) => {
      for (const name of ["ada", "bob"]) await start(name, month);
      for (const name of ["ada", "bob"]) {
        await cancel(name, await weather.name(month));
        if (name === "ada") await start(name, month);
      }
      await start("bob", month);
    },
    async (month, client) => cancel("ada", await weather.name(month), client),
    async (month) => cancel("bob", await weather.name(month)),
    async (month) => expect(await stateOf(await weather.name(month))).toBe("rejected_canceled"),
  );
  expect(calls).toBeGreaterThanOrEqual(5);
});

/** The number of calls for `by` to cancel a job that `of` started, after `after` have cancelled it. */
test.each<[string, { by: string; of: string[]; after?: string[]; requests: number; ends: boolean }]>([
  ["the only one who started it", { by: "ada", of: ["ada"], requests: 5, ends: true }],
  ["its creator, while others claim it", { by: "ada", of: ["ada", "bob", "cy"], requests: 3, ends: false }],
  ["another caller, while its creator claims it", { by: "bob", of: ["ada", "bob", "cy"], requests: 5, ends: false }],
  ["the last of two", { by: "bob", of: ["ada", "bob"], after: ["ada"], requests: 8, ends: true }],
  [
    "its creator, the last of three",
    { by: "ada", of: ["ada", "bob", "cy"], after: ["bob", "cy"], requests: 7, ends: true },
  ],
  [
    "a later caller, while an earlier one claims it",
    { by: "cy", of: ["ada", "bob", "cy"], after: ["ada"], requests: 7, ends: false },
  ],
  ["a caller who never started it", { by: "cy", of: ["ada", "bob"], requests: 2, ends: false }],
  [
    "the last of as many callers as are counted",
    { by: "c15", of: ["ada", ...numbered(15)], after: ["ada", ...numbered(14)], requests: 22, ends: true },
  ],
  ["one of more callers than are counted", { by: "c20", of: ["ada", ...numbered(20)], requests: 18, ends: false }],
])("a cancel takes few calls: %s", async (_who, { by, of, after = [], requests, ends }) => {
  const month = nextMonth();
  const job = await weather.name(month);
  for (const name of of) await start(name, month);
  for (const name of after) await cancel(name, job);
  const client = new PausingClient(-1);
  await cancel(by, job, client);
  expect([client.calls, await stateOf(job)]).toEqual([requests, ends ? "rejected_canceled" : "pending"]);
});

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `c${i + 1}`);
}

test("a caller keeps the job that it has claimed while others start and cancel it", async () => {
  const calls = await atEveryCall(
    (month) => start("ada", month),
    async (month, client) => cancel("bob", await start("bob", month), client),
    async (month) => cancel("cy", await start("cy", month)),
    async (month) => told(month, undefined, await weather.name(month)),
  );
  expect(calls).toBe(5);
});

test("a job with more claims than are counted is no longer cancelled: each caller only gives up its claim", async () => {
  const month = nextMonth();
  const names = Array.from({ length: 20 }, (_, i) => `caller ${i}`);
  for (const name of names) await start(name, month);
  for (const name of names) expect(await cancel(name, await weather.name(month))).toMatchObject({ state: "pending" });
  expect(await start("ada", month)).toBe(await weather.name(month));
});

test("a caller who starts and cancels a job again and again does not keep its creator from cancelling it", async () => {
  const month = nextMonth();
  const job = await start("ada", month);
  for (let i = 0; i < 17; i++) {
    expect(await start("bob", month)).toBe(job);
    expect(await cancel("bob", job)).toMatchObject({ state: "pending" });
  }
  expect(await cancel("ada", job)).toMatchObject({ state: "rejected_canceled" });
  expect(await start("bob", month)).toBe(`${job}~2`);
});

test("a caller who starts and cancels a job again and again does not take it from others who claim it", async () => {
  const month = nextMonth();
  const job = await start("ada", month);
  await start("cy", month);
  for (let i = 0; i < 17; i++) {
    await start("bob", month);
    await cancel("bob", job);
  }
  expect(await cancel("ada", job)).toMatchObject({ state: "pending" });
  expect(await cancel("cy", job)).toMatchObject({ state: "rejected_canceled" });
});
