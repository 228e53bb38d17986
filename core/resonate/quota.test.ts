/** Random histories of starts, ends and crashes at several isolates, against a count of what is in use. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Simulation } from "../../infra/testing/simulation.ts";
import type { Call } from "./client.ts";
import type { PromiseRecord } from "./protocol.ts";
import { placesIn, Quota, QuotaExceeded, type Taken } from "./quota.ts";

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

const idOf = (place: string) => `c.quota:${place}`;

type Step =
  | { do: "start"; at: number; count: number; times: number; meanwhile: number }
  | { do: "end"; which: number; at: number }
  | { do: "crash"; at: number; arrives: boolean }
  | { do: "lose"; at: number; when: "before" | "after" }
  | { do: "pass"; minutes: number };

const ISOLATES = 3;
const at = fc.nat(ISOLATES - 1);
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
  // At one place more: a worker, which only gives back.
  { weight: 5, arbitrary: fc.record({ do: fc.constant("end" as const), which: fc.nat(), at: fc.nat(ISOLATES) }) },
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
  quota: Quota;
  client: ReturnType<Network["client"]>;
  lost: "before" | "after" | undefined;
  /** For how many places it has asked without hearing of them. */
  unheard: number;
}

async function play(steps: readonly Step[], most: number, order: readonly number[]) {
  const network = new Network();
  const turns = [...order];
  const next = (of: number) => (turns.shift() ?? 0) % of;
  let now = HOUR_BEGAN;
  const isolate = (): Isolate => {
    const one: Isolate = { quota: new Quota(), client: { call: async () => undefined }, lost: undefined, unheard: 0 };
    one.client = network.client(one, () => {
      const { lost } = one;
      one.lost = undefined;
      return lost;
    });
    return one;
  };
  const isolates = Array.from({ length: ISOLATES + 1 }, isolate);
  const jobs: Taken[] = [];
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
      const taken = await one.quota.take(one.client, idOf, most, { duration: 10 * MINUTE, now, count });
      if (!isolates.includes(one)) return;
      jobs.push(taken);
      one.unheard -= count;
      used += count;
      seen.started += 1;
      seen.mostUsed = Math.max(seen.mostUsed, used);
      expect(placesIn(String(taken)).count).toBe(count);
      expect(used).toBeLessThanOrEqual(most);
    } catch (error) {
      if (!(error instanceof QuotaExceeded)) {
        // Whether it has them nobody knows; a later start finds out, unless its isolate dies before.
        if (!/lost/.test(String(error))) throw error;
        return;
      }
      if (!isolates.includes(one)) return;
      seen.refused += 1;
      one.unheard -= count;
      // It would have been more than 95 per cent of what the message names.
      expect(watch.highest).toBeGreaterThan(0.95 * most);
    } finally {
      watches.delete(watch);
    }
  }

  for (const step of steps) {
    if (step.do === "pass") now = Math.min(now + step.minutes * MINUTE, HOUR_BEGAN + 59 * MINUTE);
    else if (step.do === "lose") (isolates[step.at] as Isolate).lost = step.when;
    else if (step.do === "crash") {
      const one = isolates[step.at] as Isolate;
      lost += one.unheard;
      isolates[step.at] = isolate();
      await network.drop(one, step.arrives);
    } else if (step.do === "end") {
      const [job] = jobs.length > 0 ? jobs.splice(step.which % jobs.length, 1) : [];
      const one = isolates[step.at] as Isolate;
      if (!job) continue;
      const { base, count } = placesIn(String(job));
      // What is being given back is as good as free, and when that fails it is lost.
      used -= count;
      lost += count;
      const given = one.quota.giveBack(one.client, base, count).then(() => {
        lost -= count;
      });
      track(given.catch(() => {}));
    } else {
      const one = isolates[step.at] as Isolate;
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
      fc.constantFrom(3, 20, 40, 60, 200),
      fc.array(fc.nat(1_000), { maxLength: 400, size: "max" }),
      // What faults may have cost is not known exactly, so half of the histories have none.
      fc.boolean(),
      async (all, most, order, hasFaults) => {
        const steps = hasFaults ? all : all.filter((step) => step.do !== "crash" && step.do !== "lose");
        const { started, refused, mostUsed } = await play(steps, most, order);
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

test("what a version before took by numbers is given back to nobody", () => {
  expect(placesIn("c.quota:1.480000 3 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed")).toEqual({ base: "", count: 0 });
});

describe("requests", () => {
  const most = 1_000;
  const setUp = () => {
    const network = new Network();
    const jobs: Taken[] = [];
    const settled = async <T>(work: Promise<T>) => {
      let isOver = false;
      const watched = work.finally(() => {
        isOver = true;
      });
      watched.catch(() => {});
      await network.settle(
        () => 0,
        () => isOver,
      );
      return watched;
    };
    const spent = async (work: () => Promise<unknown>) => {
      const before = network.requests;
      await settled(work());
      return network.requests - before;
    };
    const isolate = () => {
      const one = { quota: new Quota() };
      const client = network.client(one);
      return {
        take: (count = 1, now = HOUR_BEGAN) =>
          spent(async () => jobs.push(await one.quota.take(client, idOf, most, { duration: MINUTE, now, count }))),
        takeAll: (times: number) =>
          spent(() =>
            Promise.all(
              Array.from({ length: times }, () =>
                one.quota.take(client, idOf, most, { duration: MINUTE, now: HOUR_BEGAN, count: 1 }),
              ),
            ),
          ),
        giveBack: () =>
          spent(async () => {
            const { base, count } = placesIn(String(jobs.shift()));
            await one.quota.giveBack(client, base, count);
          }),
      };
    };
    return { isolate, jobs };
  };

  test("a start, and a range of 240 months, is one; in a slice of the period the first is one more", async () => {
    const { take, giveBack } = setUp().isolate();
    expect(await take(240)).toBe(2);
    expect(await take(36)).toBe(1);
    for (let n = 0; n < 100; n++) expect(await take()).toBe(1);
    expect(await giveBack()).toBe(1);
    expect(await giveBack()).toBe(1);
    // The next slice has places of its own, and then it is the ledger again.
    const costs: number[] = [];
    for (let n = 0; n < 7; n++) costs.push(await take(1, HOUR_BEGAN + 11 * MINUTE));
    expect(costs).toEqual([1, 0, 0, 0, 0, 1, 1]);
  });

  test("of two isolates that start by turns each takes three at most, of which one gives back too", async () => {
    const { isolate } = setUp();
    const both = [isolate(), isolate()] as const;
    for (let n = 0; n < 200; n++) {
      expect(await both[n % 2 === 0 ? 0 : 1].take(n % 5 === 0 ? 12 : 1)).toBeLessThanOrEqual(3);
      if (n > 20) expect(await both[0].giveBack()).toBe(1);
    }
  });

  test("when all places have been in use, a start that has to look for one given back takes three at most", async () => {
    const { isolate, jobs } = setUp();
    const [edge, worker] = [isolate(), isolate()];
    for (let n = 0; n < 27; n++) await edge.take(36);
    for (let n = 0; n < 200; n++) {
      await worker.giveBack();
      expect(await edge.take(36)).toBeLessThanOrEqual(3);
    }
    expect(jobs.length).toBe(27);
  });

  test("an isolate that knows nothing looks for the end of the chain, and spares the next one that", async () => {
    const costs: Record<number, number[]> = {};
    for (const links of [0, 1, 2, 4, 8, 16, 64, 256, 1_024]) {
      const { isolate } = setUp();
      // The slice's own places are gone, and who took them knew nothing.
      expect(await isolate().take()).toBe(1);
      const writer = isolate();
      for (let n = 1; n <= links; n++) {
        await writer.take();
        await writer.giveBack();
      }
      costs[links] = [await isolate().take(2), await isolate().take(2), await isolate().take(2)];
      const [first = 0, ...others] = costs[links];
      expect(first).toBeLessThanOrEqual(6 + 2 * Math.log2(links + 1));
      if (links > 2) expect(Math.max(...others)).toBeLessThanOrEqual(4);
      // Who comes first in a slice looks for nothing.
      expect(await isolate().take(2, HOUR_BEGAN + 11 * MINUTE)).toBe(1);
    }
  });

  test("after more jobs than there are places have come and gone, an isolate that knows nothing starts one", async () => {
    const { isolate } = setUp();
    const writer = isolate();
    for (let n = 0; n < 1_500; n++) {
      await writer.take();
      await writer.giveBack();
    }
    expect(await isolate().take(240)).toBeLessThanOrEqual(40);
    // There is no room for all of them but in what was given back, which is looked at.
    expect(await isolate().take(720)).toBeLessThanOrEqual(4);
  });

  test("however many come at once at an isolate, their places are a link or two", async () => {
    const { isolate } = setUp();
    const { takeAll } = isolate();
    expect(await takeAll(100)).toBeLessThanOrEqual(3);
  });
});
