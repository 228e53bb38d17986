import { expect, test } from "vitest";
import { replay } from "../../../testing/replay.ts";
import { SimulatedJob } from "../../../testing/simulation/simulated-job.ts";
import { HOUR, type JobContext, MINUTE } from "../../author/context.ts";
import { outputId } from "../../resonate/ids.ts";

type Ctx = JobContext<{ n: number }>;
const question = { message: "?", requestedSchema: { type: "object" as const, properties: {} } };

/** A job that does a night's work in each run, up to the night `last`. */
const nightly = (last: number, done: (n: number, key: string) => void = () => {}) =>
  async function night(ctx: Ctx, { n }: { n: number }): Promise<unknown> {
    await ctx.step("report", ({ idempotencyKey }) => done(n, idempotencyKey));
    await ctx.spend(2, { of: "tokens" });
    await ctx.emit({ n, id: ctx.uuid() });
    await ctx.sleep("until tomorrow", HOUR);
    const { spent } = await ctx.spend(0, { of: "tokens" });
    return n < last ? ctx.continueAs({ n: n + 1 }) : { nights: n, spent };
  };

const BUDGET = { tokens: { limit: 1_000_000 } };

test("a job continues with other arguments: each run does its work once, under its own keys, and its counts carry over", async () => {
  const keys: string[] = [];
  const job = new SimulatedJob(
    nightly(3, (_n, key) => keys.push(key)),
    { args: { n: 1 }, budget: BUDGET },
  );
  expect(await job.toEnd()).toEqual({ kind: "complete", value: { nights: 3, spent: 6 } });
  expect(new Set(keys).size).toBe(3);
  const outputs = [1, 2, 3, 4].filter((n) => job.sim.get(outputId("job", n)));
  expect(outputs).toEqual([1, 2, 3]);
});

test("killed at every point, the runs end the same, in workers that remember the job and in others", async () => {
  const once = async (ctx: Ctx, { n }: { n: number }): Promise<unknown> => {
    const began = await ctx.step("add", () => n * 2);
    try {
      await ctx.sleep("a while", MINUTE);
      if (n < 3) return ctx.continueAs({ n: n + 1 });
      return { began, at: ctx.now() > 0 };
    } finally {
      await ctx.step("release", () => n);
    }
  };
  const { result, runs } = await replay(once, { n: 1 });
  expect(result).toEqual({ began: 6, at: true });
  expect(runs).toBeGreaterThan(50);
});

test("a late run makes as many requests as an early one; in a cold worker the search for it makes a few more", async () => {
  const job = new SimulatedJob(nightly(Number.POSITIVE_INFINITY), {
    args: { n: 1 },
    budget: BUDGET,
    deadline: 9_000 * HOUR,
  });
  const costs: number[] = [];
  const nights = async (last: number) => {
    while (costs.length < last) {
      await job.next();
      costs.push(job.cost.requests);
    }
  };
  const cold = async () => {
    job.forget();
    await job.next();
    return job.cost.requests;
  };
  await nights(12);
  const early = await cold();
  await nights(1_001);
  expect(costs[1_000]).toBe(costs[10]);
  // The search makes two more requests each time that the number of runs doubles.
  expect((await cold()) - early).toBeLessThan(2 * Math.log2(1_000 / 12) + 3);
  expect(job.journal.events.length).toBeLessThan(10);
});

test.each<[string, (ctx: Ctx) => Promise<unknown>, RegExp]>([
  ["in an item", (ctx) => ctx.all(["a"], async () => ctx.continueAs({ n: 1 })), /all "all" is still open/],
  ["in a step", (ctx) => ctx.step("a", () => ctx.continueAs({ n: 1 })), /inside of a step/],
  [
    "while a question is open",
    async (ctx) => {
      ctx.ask("go on", question);
      return ctx.continueAs({ n: 1 });
    },
    /ask "go on" is still open\. Await it before/,
  ],
  [
    "without return",
    async (ctx) => {
      ctx.continueAs({ n: 1 });
      return 1;
    },
    /write return ctx\.continueAs/,
  ],
  [
    "twice",
    async (ctx) => {
      ctx.continueAs({ n: 1 });
      return ctx.continueAs({ n: 2 });
    },
    /called twice/,
  ],
  ["with arguments that cannot be stored", async (ctx) => ctx.continueAs({ n: Number.NaN }), /NaN/],
])("ctx.continueAs is refused %s, with a message that says why", async (_where, code, words) => {
  const end = await new SimulatedJob(code as never, { args: { n: 1 } }).toEnd();
  expect(end).toMatchObject({ kind: "failed", error: { message: expect.stringMatching(words) } });
});
