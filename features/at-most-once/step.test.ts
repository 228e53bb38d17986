/** Steps that begin at most once, wherever their workers die. */
import { expect, test } from "vitest";
import { type Context, HOUR, SECOND, StepInterrupted } from "../../core/author/context.ts";
import { LeaseLost } from "../../core/engine/job-lease.ts";
import type { Runnable } from "../../core/engine/runtime.ts";
import type { Death } from "../../testing/simulation/plan.ts";
import { JOB_NAME, SimulatedJob } from "../../testing/simulation/simulated-job.ts";
import { stepFeatures } from "../../testing/simulation/step-features.ts";
import { trial } from "../../testing/simulation/trial.ts";

test("an at-most-once step is not repeated, wherever its worker dies", async () => {
  const run = async (deaths: Death[]) => {
    let paid = 0;
    const fn = async (ctx: Context) => {
      try {
        return await ctx.step("pay", () => ++paid, { atMostOnce: true });
      } catch (error) {
        return [error instanceof StepInterrupted && error.begunAt, (error as Error).message];
      }
    };
    const { value, requests } = await trial(() => fn as unknown as Runnable, {}, {}, { deaths, isWarm: false });
    expect(paid).toBeLessThanOrEqual(1);
    if (value !== 1) {
      const [begunAt, message] = value as [number, string];
      const at = new Date(begunAt).toISOString();
      expect(message).toBe(`it was begun at ${at}, and whether it had its effect is unknown: it is not repeated`);
    }
    return { requests, value };
  };
  const { requests, value } = await run([]);
  expect(value).toBe(1);
  const values = [];
  for (let at = 1; at <= requests; at++) {
    for (const how of ["before", "after", "alone"] as const) values.push((await run([{ at, how }])).value);
  }
  expect(values.filter((each) => each !== 1).length).toBeGreaterThan(0);
  expect(values.filter((each) => each === 1).length).toBeGreaterThan(0);
});

test.each([
  ["concurrency", { concurrency: { name: "upstream", limit: 1 } }],
  ["rate", { rate: { name: "upstream", limit: 1, per: HOUR } }],
])("an at-most-once step whose worker dies while it waits for its %s has not begun", async (_what, limits) => {
  let waits = 0;
  let paid = 0;
  const simulated: SimulatedJob = new SimulatedJob(
    (ctx: Context) => ctx.step("pay", () => ++paid, { ...limits, atMostOnce: true }),
    {
      steps: stepFeatures({
        takeLimit: async () => {
          waits += 1;
          if (waits > 1) return () => {};
          await simulated.clock.pause(HOUR);
          throw new LeaseLost("the worker is replaced", { reason: "ended" });
        },
      }),
    },
  );
  await expect(simulated.execute()).rejects.toThrow("the worker is replaced");
  simulated.sim.kill(JOB_NAME);
  simulated.forget();
  expect(await simulated.toEnd()).toEqual({ kind: "complete", value: 1 });
});

test("an at-most-once step that is given up before its beginning is recorded does not run, and frees its place", async () => {
  let free = 0;
  let paid = 0;
  const place = Promise.withResolvers<void>();
  const simulated: SimulatedJob = new SimulatedJob(
    async (ctx: Context) => {
      await ctx.step("first", () => 0); // the first record is written alone
      await ctx.race({
        pay: (c) => c.step("pay", () => ++paid, { atMostOnce: true, concurrency: { name: "upstream", limit: 1 } }),
        // The outcomes of these steps are written together, and the second is handed over after the place was given.
        one: async (c) => {
          await c.step("one", () => 1);
          place.resolve();
          await c.sleep("long", HOUR);
        },
        two: (c) => c.step("two", () => 2),
      });
      await ctx.step("last", () => simulated.clock.pause(SECOND));
    },
    {
      steps: stepFeatures({
        takeLimit: async () => {
          await place.promise;
          return () => void free++;
        },
      }),
    },
  );
  expect(await simulated.toEnd()).toMatchObject({ kind: "complete" });
  expect([paid, free]).toEqual([0, 1]);
  expect(simulated.paths()).not.toContain("race/pay/pay");
});

test("an at-most-once step that fails is not retried", async () => {
  let attempts = 0;
  const fetches = (ctx: Context) =>
    ctx.step(
      "fetch",
      () => {
        attempts += 1;
        throw new Error("503");
      },
      { atMostOnce: true },
    );
  expect(await new SimulatedJob(fetches).toEnd()).toMatchObject({ kind: "failed", error: { message: "503" } });
  expect(attempts).toBe(1);
});
