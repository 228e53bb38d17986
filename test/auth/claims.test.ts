/** Starting and cancelling a shared job at the same time, at every point at which one can come upon the other. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { callerOf } from "../../functions/caller.ts";
import { JOBS, type WeatherMonth, weather } from "../../functions/jobs/index.ts";
import { RemoteStore } from "../../functions/resonate/store.ts";
import { Wire } from "../../functions/resonate/wire.ts";
import { startJob } from "../../functions/start.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { ownGroup } from "../support/worker.ts";

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

const { group, namespace } = ownGroup();

/** Stops before its `n`th call until it is told to go on. */
class PausingWire extends Wire {
  readonly paused = Promise.withResolvers<void>();
  readonly resumed = Promise.withResolvers<void>();
  #left: number;

  constructor(n: number) {
    super(resonate.url, process.env.RESONATE_TOKEN);
    this.#left = n;
  }

  override async call(...call: Parameters<Wire["call"]>) {
    if (this.#left-- === 0) {
      this.paused.resolve();
      await this.resumed.promise;
    }
    return super.call(...call);
  }
}

async function storeOf(name: string, wire = new PausingWire(-1)): Promise<RemoteStore> {
  const { key } = await callerOf(name);
  const place = { RESONATE_URL: resonate.url, RESONATE_GROUP: group, RESONATE_NAMESPACE: namespace };
  return new RemoteStore(place, JOBS, { key, claimant: key, request: randomUUID() }, wire);
}

let months = 0;
const nextMonth = (): WeatherMonth => ({ latitude: 0, longitude: ++months / 100, year: 2013, month: 5 });

const start = async (name: string, month: WeatherMonth, wire?: PausingWire) =>
  (await startJob(await storeOf(name, wire), weather, month, Date.now())).name;
const cancel = async (name: string, job: string, wire?: PausingWire) => (await storeOf(name, wire)).cancel(job);
const stateOf = async (job: string) => (await (await storeOf("anyone")).get(job))?.state;

/**
 * Runs `paused` once for each of its calls, stopped before that call while `meanwhile` runs to its end; `check` sees to
 * what has come of both. Returns how often that was.
 */
async function atEveryCall<A, B>(
  prepare: (month: WeatherMonth) => Promise<unknown>,
  paused: (month: WeatherMonth, wire: PausingWire) => Promise<A>,
  meanwhile: (month: WeatherMonth) => Promise<B>,
  check: (month: WeatherMonth, a: A, b: B) => Promise<void>,
): Promise<number> {
  for (let n = 0; ; n++) {
    const month = nextMonth();
    await prepare(month);
    const wire = new PausingWire(n);
    const running = paused(month, wire);
    const isPaused = await Promise.race([running.then(() => false), wire.paused.promise.then(() => true)]);
    const b = await meanwhile(month);
    wire.resumed.resolve();
    await check(month, await running, b);
    if (!isPaused) return n;
  }
}

const told = async (_month: WeatherMonth, _outcome: unknown, job: string) => expect(await stateOf(job)).toBe("pending");

test("who starts while the only other one cancels is told of a job that runs", async () => {
  const calls = await atEveryCall(
    (month) => start("ada", month),
    (month, wire) => cancel("ada", weather.name(month), wire),
    (month) => start("bob", month),
    told,
  );
  expect(calls).toBeGreaterThan(4);
});

test("who is starting while the only other one cancels is told of a job that runs", async () => {
  const calls = await atEveryCall(
    (month) => start("ada", month),
    (month, wire) => start("bob", month, wire),
    (month) => cancel("ada", weather.name(month)),
    async (month, job) => told(month, undefined, job),
  );
  expect(calls).toBeGreaterThan(2);
});

test("who starts while the last of several cancels is told of a job that runs", async () => {
  const calls = await atEveryCall(
    async (month) => {
      for (const name of ["ada", "bob", "cy"]) await start(name, month);
      for (const name of ["ada", "bob"]) await cancel(name, weather.name(month));
    },
    (month, wire) => cancel("cy", weather.name(month), wire),
    (month) => start("ada", month),
    told,
  );
  expect(calls).toBeGreaterThan(6);
});

test("of two who cancel at once, the last one stops the job", async () => {
  const calls = await atEveryCall(
    async (month) => {
      for (const name of ["ada", "bob"]) await start(name, month);
    },
    (month, wire) => cancel("ada", weather.name(month), wire),
    (month) => cancel("bob", weather.name(month)),
    async (month) => expect(await stateOf(weather.name(month))).toBe("rejected_canceled"),
  );
  expect(calls).toBeGreaterThan(6);
});

test("who keeps wanting it keeps it, while others come and go", async () => {
  const calls = await atEveryCall(
    (month) => start("ada", month),
    async (month, wire) => cancel("bob", await start("bob", month), wire),
    async (month) => cancel("cy", await start("cy", month)),
    async (month) => told(month, undefined, weather.name(month)),
  );
  expect(calls).toBeGreaterThan(6);
});

test("a job that many have claimed is not cancelled any more, and each still gives up only its own", async () => {
  const month = nextMonth();
  const names = Array.from({ length: 20 }, (_, i) => `caller ${i}`);
  for (const name of names) await start(name, month);
  for (const name of names) expect(await cancel(name, weather.name(month))).toMatchObject({ state: "pending" });
  expect(await start("ada", month)).toBe(weather.name(month));
});
