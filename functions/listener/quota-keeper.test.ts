/** Edges of a deployment that ask the listener for places: what it costs at the Resonate server, whatever begins anew. */
import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Ledgers } from "../../core/jobs/ledger.ts";
import { type Places, placesIn, wantedFor } from "../../core/jobs/quota.ts";
import { ResonateClient } from "../../core/store/client.ts";
import { ResonateRefused, ResonateUnavailable } from "../../core/store/failures.ts";
import { Simulation } from "../../testing/simulation.ts";
import { createKeeper, KeptPlaces, type ListenerStorage } from "./quota-keeper.ts";

const RUNS = Number(process.env.FUZZ_RUNS ?? 60);
const MINUTE = 60_000;
const HOUR_BEGAN = 480_000 * 60 * MINUTE;

beforeEach(() => void vi.useFakeTimers({ now: HOUR_BEGAN }));
afterEach(() => void vi.useRealTimers());

/** What a Durable Object keeps of what it is told to. */
class Storage implements ListenerStorage {
  readonly rows = new Map<string, unknown>();
  alarm: number | null = null;
  writes = 0;
  get = async <T>(key: string) => structuredClone(this.rows.get(key)) as T | undefined;
  put = async (key: string, value: unknown) => {
    this.writes += 1;
    this.rows.set(key, structuredClone(value));
  };
  delete = async (key: string) => this.rows.delete(key);
  list = async () => new Map(this.rows);
  getAlarm = async () => this.alarm;
  setAlarm = async (time: number) => {
    this.alarm = time;
  };
}

/** A deployment: a Resonate server, the listener of a caller, as many edges as one likes, and workers. */
function deploy() {
  const sim = new Simulation();
  const storage = new Storage();
  const state = { requests: 0, answer: undefined as number | undefined, isListening: true };
  const server = {
    url: "http://resonate",
    group: "workers",
    namespace: "",
    fetch: (async (_url: string, init: RequestInit) => {
      state.requests += 1;
      const { kind, data } = JSON.parse(String(init.body));
      if (state.answer !== undefined) return Response.json({ head: { status: state.answer }, data: "no" });
      const { status, data: answer } = await sim.send(kind, data);
      return Response.json({ kind, head: { status }, data: answer });
    }) as typeof fetch,
  };
  let listener = new KeptPlaces(storage, server);
  const client = new ResonateClient(server);
  const keeper = createKeeper({
    idFromName: (name) => ({ name }),
    get: () => ({
      places: async (asked) => {
        if (!state.isListening) throw new Error("the listener is away");
        return structuredClone(await listener.answer(structuredClone(asked)));
      },
      listen: async () => Promise.reject(new Error("nobody waits here")),
    }),
  });
  const worker = () => {
    const ledgers = new Ledgers();
    return (places: Places) => ledgers.giveBack(client, places);
  };
  return {
    storage,
    state,
    keeper,
    worker,
    restart: async () => {
      // What was to be written down is, within a second.
      await vi.advanceTimersByTimeAsync(1_500);
      listener = new KeptPlaces(storage, server);
    },
    sweep: () => listener.sweep(),
    /** The tag of a start, `null` when it is refused, and the requests that it took. */
    start: async (count: number, most: number, now = HOUR_BEGAN) => {
      const before = state.requests;
      const wanted = wantedFor((place) => `c.quota:${place}`, most, { duration: 10 * MINUTE, now, count });
      const tag = await keeper.take("c.", wanted);
      return { tag, requests: state.requests - before };
    },
  };
}

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("start" as const),
      count: fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 36 }), fc.constant(240)),
      times: fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 60 })),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("end" as const),
      which: fc.nat(),
      at: fc.nat(3),
      times: fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 60 })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("found" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
);

test("in any history a start takes three requests at most, and is refused between 95 and 100 per cent, never above", {
  timeout: 300_000,
}, async () => {
  const seen = { started: 0, refused: 0, most: 0, byRequests: [0, 0, 0, 0] };
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 10, maxLength: 80, size: "max" }),
      fc.constantFrom(3, 20, 33, 100, 600, 1_000),
      async (steps, most) => {
        vi.setSystemTime(HOUR_BEGAN);
        const deployment = deploy();
        let workers = Array.from({ length: 4 }, deployment.worker);
        const jobs: Places[] = [];
        let used = 0;
        for (const one of steps) {
          if (one.do === "restart") {
            await deployment.restart();
            workers = Array.from({ length: 4 }, deployment.worker);
          } else if (one.do === "end") {
            for (let n = 0; n < one.times && jobs.length > 0; n++) {
              const [job] = jobs.splice((one.which + n) % jobs.length, 1) as [Places];
              await workers[one.at]?.(job);
              used -= job.count;
            }
          } else {
            const { count, times } = one.do === "found" ? { count: 1, times: 1 } : one;
            for (let n = 0; n < times; n++) {
              const { tag, requests } = await deployment.start(count, most);
              seen.byRequests[requests] = (seen.byRequests[requests] ?? 0) + 1;
              expect(requests).toBeLessThanOrEqual(3);
              if (typeof tag !== "string") {
                seen.refused += 1;
                expect(used + count).toBeGreaterThan(0.95 * most);
                break;
              }
              if (one.do === "found") {
                // The job was there: the places come back by themselves.
                await deployment.keeper.giveBack("c.", placesIn(tag), true);
                await vi.advanceTimersByTimeAsync(1);
                continue;
              }
              seen.started += 1;
              used += count;
              expect(used).toBeLessThanOrEqual(most);
              seen.most = Math.max(seen.most, used / most);
              jobs.push(placesIn(tag));
            }
          }
        }
      },
    ),
    { numRuns: RUNS },
  );
  expect(seen.started).toBeGreaterThan(20 * RUNS);
  expect(seen.refused).toBeGreaterThan(RUNS);
  expect(seen.most).toBe(1);
});

test("after however many links, a listener that begins anew takes one request, and writes a row a second at most", async () => {
  for (const links of [4, 64, 1_024]) {
    vi.setSystemTime(HOUR_BEGAN);
    const { start, restart, storage, worker } = deploy();
    for (let n = 0; n < links; n++) {
      const { tag, requests } = await start(1, 1_000);
      // From the 1,001st on what came back is asked for, a mark's worth at once.
      expect(requests).toBeLessThanOrEqual(n < 1_000 ? 1 : 2);
      // By a worker that knows nothing but the job.
      await worker()(placesIn(String(tag)));
    }
    expect(storage.writes).toBe(1);
    await restart();
    expect(storage.writes).toBe(2);
    expect((await start(240, 1_000)).requests).toBeLessThanOrEqual(3);
    expect((await start(1, 1_000)).requests).toBe(1);
    await restart();
    expect((await start(1, 1_000)).requests).toBe(1);
    // What it has forgotten it looks for.
    storage.rows.clear();
    await restart();
    storage.rows.clear();
    await restart();
    const { tag, requests } = await start(1, 1_000);
    expect(typeof tag).toBe("string");
    expect(requests).toBeLessThanOrEqual(6 + 2 * Math.log2(links + 1));
  }
});

test("ledgers whose period is over are forgotten within a day, others stay", async () => {
  const { start, restart, sweep, storage } = deploy();
  await start(1, 1_000);
  expect(storage.alarm).toBe(HOUR_BEGAN + 24 * 60 * MINUTE);
  vi.setSystemTime(HOUR_BEGAN + 61 * MINUTE);
  await restart();
  await start(1, 1_000, Date.now());
  expect(storage.rows.size).toBe(2);
  await sweep();
  expect([...storage.rows.keys()]).toEqual(["c.quota:1.480001"]);
  vi.setSystemTime(HOUR_BEGAN + 121 * MINUTE);
  await sweep();
  expect(storage.rows.size).toBe(0);
  // The next one that is written down sees to it that it is removed.
  storage.alarm = null;
  await start(1, 1_000, Date.now());
  await restart();
  expect(storage.alarm).toBeGreaterThan(Date.now());
});

test("a listener that is away leaves the places to whoever wants them; that the server is away it says", async () => {
  const { start, state } = deploy();
  state.isListening = false;
  expect((await start(1, 1_000)).tag).toBeUndefined();
  state.isListening = true;
  state.answer = 501;
  await expect(start(1, 1_000)).rejects.toBeInstanceOf(ResonateUnavailable);
  state.answer = 403;
  await expect(start(1, 1_000)).rejects.toBeInstanceOf(ResonateRefused);
  state.answer = undefined;
  expect((await start(1, 1_000)).tag).toMatch(/^c\.quota:1\.480000\.g 1 40\/0\/0\/\S+$/);
});
