/** Random histories of starts, ends and crashes at several isolates, against a count of what is in use. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Simulation } from "../../testing/simulation.ts";
import type { Call } from "../store/client.ts";
import type { PromiseRecord } from "../store/protocol.ts";
import { Ledgers } from "./ledger.ts";
import { exceeded, type Places, placesIn, type Wanted, wantedFor } from "./quota.ts";

const RUNS = Number(process.env.FUZZ_RUNS ?? 100);
const SEED = process.env.FUZZ_SEED === undefined ? {} : { seed: Number(process.env.FUZZ_SEED) };

const MINUTE = 60_000;

/** The beginning of an hour; nothing here takes longer. */
const HOUR_BEGAN = 480_000 * 60 * MINUTE;

beforeEach(() => void vi.useFakeTimers({ now: HOUR_BEGAN }));
afterEach(() => void vi.useRealTimers());

/** How long an answer takes, in milliseconds. */
const LATENCY = 3;

/** The server, as isolates reach it: answers come in whatever order `next` says, and may be lost. */
class Network {
  readonly #sim = new Simulation();
  #waiting: { owner: object; answer(): Promise<void>; lose(): void }[] = [];
  requests = 0;

  client(owner: object, isLost: () => "before" | "after" | undefined = () => undefined) {
    const call = ({ kind, data }: Call) =>
      new Promise<PromiseRecord | undefined>((resolve, reject) => {
        const lose = () => reject(new Error("lost"));
        const answer = async () => {
          const lost = isLost();
          if (lost === "before") return lose();
          this.requests += 1;
          const { status, data: found } = await this.#sim.send(kind, data);
          if (lost === "after") return lose();
          resolve(status === 200 ? (found as { promise: PromiseRecord }).promise : undefined);
        };
        this.#waiting.push({ owner, answer, lose });
      });
    return { call };
  }

  /** Nothing of an isolate that died is answered, though it may have arrived. */
  async drop(owner: object, arrives: boolean): Promise<void> {
    const dropped = this.#waiting.filter((request) => request.owner === owner);
    this.#waiting = this.#waiting.filter((request) => request.owner !== owner);
    if (arrives) for (const { answer } of dropped) await answer();
    for (const { lose } of dropped) lose();
  }

  /** Lets things happen, until there is nothing left to wait for or `most` requests have been answered. */
  async settle(next: (of: number) => number, isOver: () => boolean, most = Number.POSITIVE_INFINITY): Promise<void> {
    for (let n = 0; n < most && !isOver(); ) {
      // Whoever waits for another of its isolate looks again after some milliseconds.
      await vi.advanceTimersByTimeAsync(this.#waiting.length > 0 ? LATENCY : 5);
      const [request] = this.#waiting.length > 0 ? this.#waiting.splice(next(this.#waiting.length), 1) : [];
      if (!request) continue;
      await request.answer();
      n += 1;
    }
  }
}

const wanted = (most: number, count: number, now = HOUR_BEGAN): Wanted =>
  wantedFor((place) => `c.quota:${place}`, most, { duration: 10 * MINUTE, now, count });

type Step =
  | { do: "start"; at: number; count: number; times: number; meanwhile: number }
  | { do: "end"; which: number; at: number }
  | { do: "crash"; at: number; arrives: boolean }
  | { do: "lose"; at: number; when: "before" | "after" }
  | { do: "pass"; minutes: number };

/** How many take places, each for itself, and how many give them back: workers. */
const TAKERS = [1, 3, 50] as const;
const WORKERS = 2;
const at = fc.nat(49);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("start" as const),
      at,
      count: fc.oneof(
        { weight: 4, arbitrary: fc.constant(1) },
        { weight: 1, arbitrary: fc.integer({ min: 2, max: 24 }) },
      ),
      times: fc.oneof(
        { weight: 3, arbitrary: fc.constant(1) },
        { weight: 1, arbitrary: fc.integer({ min: 2, max: 12 }) },
      ),
      meanwhile: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.nat(3)),
    }),
  },
  // At a worker, or where it was cancelled.
  { weight: 5, arbitrary: fc.record({ do: fc.constant("end" as const), which: fc.nat(), at: fc.nat(50 + WORKERS) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("crash" as const), at, arrives: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("lose" as const),
      at,
      when: fc.constantFrom("before" as const, "after" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("pass" as const), minutes: fc.nat(1) }) },
);

interface Isolate {
  ledgers: Ledgers;
  client: ReturnType<Network["client"]>;
  lost: "before" | "after" | undefined;
  /** For how many places it has asked without hearing of them. */
  unheard: number;
}

async function play(steps: readonly Step[], most: number, takers: number, order: readonly number[]) {
  const network = new Network();
  const turns = [...order];
  const next = (of: number) => (turns.shift() ?? 0) % of;
  let now = HOUR_BEGAN;
  const isolate = (): Isolate => {
    const one: Isolate = {
      ledgers: new Ledgers(),
      client: { call: async () => undefined },
      lost: undefined,
      unheard: 0,
    };
    one.client = network.client(one, () => {
      const { lost } = one;
      one.lost = undefined;
      return lost;
    });
    return one;
  };
  const isolates = Array.from({ length: takers + WORKERS }, isolate);
  const jobs: Places[] = [];
  let used = 0;
  /** What crashes have cost, at most, and what may be held without being used. */
  let lost = 0;
  const unheard = () => isolates.reduce((sum, one) => sum + one.unheard, 0);
  const watches = new Set<{ highest: number }>();
  const note = () => {
    const now = used + lost + unheard();
    for (const watch of watches) watch.highest = Math.max(watch.highest, now);
  };
  const running = new Set<Promise<void>>();
  const seen = { started: 0, refused: 0, mostUsed: 0 };
  const track = (work: Promise<void>) => {
    const tracked = work.finally(() => running.delete(tracked));
    running.add(tracked);
    tracked.catch(() => {});
  };

  async function start(one: Isolate, count: number) {
    one.unheard += count;
    // What was in use at some time of the start; what others ask for meanwhile may be in the way too.
    const watch = { highest: 0 };
    watches.add(watch);
    note();
    try {
      const taken = await one.ledgers.take(one.client, wanted(most, count, now));
      if (!isolates.includes(one)) return;
      one.unheard -= count;
      if (taken === undefined) {
        seen.refused += 1;
        // It would have been more than 95 per cent of what the message names.
        expect(watch.highest).toBeGreaterThan(0.95 * most);
        return;
      }
      jobs.push(placesIn(taken));
      used += count;
      seen.started += 1;
      seen.mostUsed = Math.max(seen.mostUsed, used);
      expect(placesIn(taken).count).toBe(count);
      expect(used).toBeLessThanOrEqual(most);
    } catch (error) {
      // Whether it has them nobody knows; a later start finds out, unless its isolate dies before.
      if (!/lost/.test(String(error))) throw error;
    } finally {
      watches.delete(watch);
    }
  }

  for (const step of steps) {
    if (step.do === "pass") now = Math.min(now + step.minutes * MINUTE, HOUR_BEGAN + 59 * MINUTE);
    else if (step.do === "lose") (isolates[step.at % takers] as Isolate).lost = step.when;
    else if (step.do === "crash") {
      const one = isolates[step.at % takers] as Isolate;
      lost += one.unheard;
      isolates[step.at % takers] = isolate();
      await network.drop(one, step.arrives);
    } else if (step.do === "end") {
      const [job] = jobs.length > 0 ? jobs.splice(step.which % jobs.length, 1) : [];
      const one = isolates[step.at % isolates.length] as Isolate;
      if (!job) continue;
      const { count } = job;
      // What is being given back is as good as free, and when that fails it is lost.
      used -= count;
      lost += count;
      const given = one.ledgers.giveBack(one.client, job).then(() => {
        lost -= count;
      });
      track(given.catch(() => {}));
    } else {
      const one = isolates[step.at % takers] as Isolate;
      for (let n = 0; n < step.times; n++) track(start(one, step.count));
      await network.settle(next, () => running.size === 0, step.meanwhile);
    }
  }
  const all = Promise.all(running);
  all.catch(() => {});
  await network.settle(next, () => running.size === 0);
  await all;
  return seen;
}

test("in any history never more places are in use than there are, and none is refused below 95 per cent", {
  timeout: 600_000,
}, async () => {
  const sum = { started: 0, refused: 0, full: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 20, maxLength: 120, size: "max" }),
      fc.constantFrom(3, 20, 40, 60, 200, 1_000),
      fc.constantFrom(...TAKERS),
      fc.array(fc.nat(1_000), { maxLength: 400, size: "max" }),
      // What faults may have cost is not known exactly, so half of the histories have none.
      fc.boolean(),
      async (all, most, takers, order, hasFaults) => {
        const steps = hasFaults ? all : all.filter((step) => step.do !== "crash" && step.do !== "lose");
        const { started, refused, mostUsed } = await play(steps, most, takers, order);
        sum.started += started;
        sum.refused += refused;
        if (mostUsed >= 0.95 * most) sum.full += 1;
      },
    ),
    { numRuns: RUNS, ...SEED },
  );
  // The histories are worth something only if they came to the limit.
  expect(sum.started).toBeGreaterThan(10 * RUNS);
  expect(sum.refused).toBeGreaterThan(RUNS);
  expect(sum.full).toBeGreaterThan(0.2 * RUNS);
});

test("what the tag of a job says of its places, in this version and those before", () => {
  const base = "c.quota:1.480000";
  const by = "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed";
  expect(placesIn(`${base}.g 3 40/7/19/${by}`)).toEqual({ base, count: 3, unit: 40, given: { link: 7, sum: 19 } });
  expect(placesIn(`${base}.g 3 ${by}`)).toEqual({ base, count: 3, unit: 0, given: { link: 0, sum: 0 } });
  // By numbers: they are given back to nobody.
  expect(placesIn(`${base} 3 ${by}`)).toMatchObject({ base: "", count: 0 });
});

test("a refusal names the number, how long such jobs take, and when there is room again", () => {
  const start = { duration: 10 * MINUTE, now: HOUR_BEGAN + 20 * MINUTE, count: 1 };
  const words = "a caller may start 30 jobs that take up to an hour in an hour. Try again in 40 minutes";
  expect(exceeded(30, start).message).toBe(words);
  expect(exceeded(30, { ...start, count: 7 }).message).toBe(`this counts as 7 jobs, and ${words}`);
});

describe("requests", () => {
  const most = 1_000;
  const setUp = () => {
    const network = new Network();
    const jobs: Places[] = [];
    const spent = async (work: () => Promise<unknown>) => {
      const before = network.requests;
      let isOver = false;
      const watched = work().finally(() => {
        isOver = true;
      });
      watched.catch(() => {});
      await network.settle(
        () => 0,
        () => isOver,
      );
      await watched;
      return network.requests - before;
    };
    const isolate = () => {
      const ledgers = new Ledgers();
      const client = network.client(ledgers);
      const take = async (count: number) => {
        const tag = await ledgers.take(client, wanted(most, count));
        if (tag !== undefined) jobs.push(placesIn(tag));
      };
      return {
        take: (count = 1) => spent(() => take(count)),
        takeAll: (times: number) => spent(() => Promise.all(Array.from({ length: times }, () => take(1)))),
        giveBack: () => spent(() => ledgers.giveBack(client, jobs.shift() as Places)),
      };
    };
    return { isolate, jobs };
  };

  test("a start, and a range of 240 months, is one; what it gives back is one, and one for each 4 per cent", async () => {
    const { take, giveBack } = setUp().isolate();
    expect(await take(240)).toBe(1);
    expect(await take(36)).toBe(1);
    for (let n = 0; n < 100; n++) expect(await take()).toBe(1);
    expect(await giveBack()).toBe(1 + 240 / 40);
    expect(await giveBack()).toBe(1);
    const costs: number[] = [];
    for (let n = 0; n < 40; n++) costs.push(await giveBack());
    expect(costs.filter((cost) => cost > 1)).toEqual([2]);
  });

  test("of two isolates that start by turns each takes three at most, of which one gives back too", async () => {
    const { isolate } = setUp();
    const both = [isolate(), isolate()] as const;
    for (let n = 0; n < 200; n++) {
      expect(await both[n % 2 === 0 ? 0 : 1].take(n % 5 === 0 ? 12 : 1)).toBeLessThanOrEqual(3);
      if (n > 20) expect(await both[0].giveBack()).toBeLessThanOrEqual(2);
    }
  });

  test("when all places have been in use, a start of any size takes three at most, a refused one two", async () => {
    for (const [count, given] of [
      [1, 1],
      [36, 36],
      [240, 240],
      [240, 960],
    ] as const) {
      const { isolate, jobs } = setUp();
      const [edge, worker] = [isolate(), isolate()];
      for (let n = 0; n < most; n++) await edge.take();
      expect(await edge.take(count)).toBe(2);
      expect(jobs.length).toBe(most);
      for (let n = 0; n < given; n++) await worker.giveBack();
      // 4 per cent are less than the next mark.
      for (let n = 0; n < 40 && count > 1; n++) await worker.giveBack();
      expect(await edge.take(count)).toBeLessThanOrEqual(3);
      expect(jobs.at(-1)?.count).toBe(count);
    }
  });

  test("an isolate that knows nothing looks for the end of the chain; a worker that knows the job does not", async () => {
    for (const links of [0, 1, 2, 4, 8, 16, 64, 256, 1_024]) {
      const { isolate, jobs } = setUp();
      const writer = isolate();
      for (let n = 1; n <= links; n++) {
        await writer.take();
        await writer.giveBack();
      }
      const fresh = isolate();
      expect(await fresh.take(2)).toBeLessThanOrEqual(6 + 2 * Math.log2(links + 1));
      expect(await fresh.take(2)).toBeLessThanOrEqual(3);
      await writer.take();
      while (jobs.length > 1) jobs.shift();
      expect(await isolate().giveBack()).toBeLessThanOrEqual(2);
    }
  });

  test("however many come at once at an isolate, their places are a link or two", async () => {
    const { isolate } = setUp();
    const { takeAll } = isolate();
    expect(await takeAll(100)).toBeLessThanOrEqual(3);
  });
});
