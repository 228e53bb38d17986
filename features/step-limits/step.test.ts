/** Attempts that wait for the limits of their steps. */
import { expect, test } from "vitest";
import { type Context, HOUR, MINUTE, SECOND, type StepOptions } from "../../core/author/context.ts";
import { SimulatedJob } from "../../testing/simulation/simulated-job.ts";
import { stepFeatures } from "../../testing/simulation/step-features.ts";
import type { TakeLimit } from "./step.ts";

/** Keeps limits as workers do, in turns. Notes by how much a place was held beyond the time that it was asked for. */
function limits(simulated: () => SimulatedJob) {
  const taken = new Map<string, number>();
  const waiting = new Map<string, Set<() => void>>();
  const noted = { overtime: 0 };
  const free = (key: string) => {
    const [next] = waiting.get(key) ?? [];
    if (next) next();
    else taken.set(key, (taken.get(key) ?? 0) - 1);
  };
  const takeLimit: TakeLimit = async ({ name, limit: most, per, time = 0 }, _owner, signal) => {
    const { clock } = simulated();
    const key = per === undefined ? name : `${name} per ${per}`;
    const queue = waiting.get(key) ?? new Set();
    waiting.set(key, queue);
    if ((taken.get(key) ?? 0) < most) taken.set(key, (taken.get(key) ?? 0) + 1);
    else {
      await new Promise<void>((resolve, reject) => {
        const turn = () => {
          queue.delete(turn);
          resolve();
        };
        queue.add(turn);
        signal.addEventListener("abort", () => queue.delete(turn) && reject(signal.reason));
      });
    }
    if (per !== undefined) {
      clock.after(per, () => free(key));
      return () => {};
    }
    const since = clock.now();
    return () => {
      noted.overtime = Math.max(noted.overtime, clock.now() - since - time);
      free(key);
    };
  };
  return { takeLimit, noted };
}

test("a rate holds for attempts that have waited for a place, and the wait for a rate ends before the place does", async () => {
  const { takeLimit, noted } = limits(() => simulated);
  const begun: number[] = [];
  const simulated: SimulatedJob = new SimulatedJob(
    (ctx: Context) =>
      ctx.all([1, 2, 3, 4, 5, 6, 7, 8], (on, n) =>
        on.step(
          "ask",
          async () => {
            begun.push(simulated.clock.now());
            await simulated.clock.pause(n <= 2 ? 30 * MINUTE : SECOND);
            return n;
          },
          {
            concurrency: { name: "upstream", limit: 2 },
            rate: { name: "upstream", limit: 1, per: 5 * MINUTE },
            timeout: HOUR,
          },
        ),
      ),
    { steps: stepFeatures({ takeLimit }) },
  );
  expect(await simulated.toEnd()).toMatchObject({ kind: "complete" });
  expect(begun).toHaveLength(8);
  const apart = begun.slice(1).map((at, i) => at - (begun[i] ?? 0));
  expect(Math.min(...apart)).toBeGreaterThanOrEqual(5 * MINUTE);
  expect(noted.overtime).toBe(0);
});

test("a step that waits long for its rate leaves its place to others", async () => {
  const { takeLimit } = limits(() => simulated);
  const concurrency = { name: "upstream", limit: 1 };
  const begun = new Map<string, number>();
  const simulated: SimulatedJob = new SimulatedJob(
    async (ctx: Context) => {
      const note = (name: string) => () => void begun.set(name, simulated.clock.now());
      const rate = { name: "slow", limit: 1, per: HOUR };
      await ctx.step("first", note("first"), { concurrency, rate });
      const second = ctx.step("second", note("second"), { concurrency, rate });
      await ctx.step("other", note("other"), { concurrency });
      await second;
    },
    { steps: stepFeatures({ takeLimit }) },
  );
  expect(await simulated.toEnd()).toMatchObject({ kind: "complete" });
  const after = (name: string) => (begun.get(name) ?? 0) - (begun.get("first") ?? 0);
  expect(after("other")).toBeLessThanOrEqual(2 * MINUTE);
  expect(after("second")).toBeGreaterThanOrEqual(HOUR);
});

test.each<[what: string, options: StepOptions]>([
  ["a concurrency of none", { concurrency: { name: "upstream", limit: 0 } }],
  ["a concurrency without a name", { concurrency: { name: "", limit: 1 } }],
  ["a rate without a span", { rate: { name: "upstream", limit: 1, per: 0 } }],
])("a step with %s is refused, as it would never begin", async (_what, options) => {
  const simulated = new SimulatedJob((ctx: Context) => ctx.step("ask", () => 1, options));
  const error = expect.objectContaining({
    name: "NondeterminismError",
    message: expect.stringMatching(/^step "ask": a conc/),
  });
  expect(await simulated.toEnd()).toEqual({ kind: "failed", error });
});

test("a step without limits takes none, and may take as long as its job", async () => {
  const takeLimit = async () => Promise.reject(new Error("no limit was asked for"));
  const simulated: SimulatedJob = new SimulatedJob(
    (ctx: Context) => ctx.step("ask", () => simulated.clock.pause(HOUR).then(() => "answered")),
    { steps: stepFeatures({ takeLimit }) },
  );
  expect(await simulated.toEnd()).toEqual({ kind: "complete", value: "answered" });
});

test("an attempt that holds a place is aborted after a minute, if its step does not say", async () => {
  const simulated = new SimulatedJob((ctx: Context) =>
    ctx.step("ask", () => new Promise(() => {}), { concurrency: { name: "upstream", limit: 1 }, retry: false }),
  );
  expect(await simulated.toEnd()).toMatchObject({ kind: "failed", error: { message: "no outcome within a minute" } });
});

test("an attempt that is given up while it waits leaves the queue", async () => {
  const left: unknown[] = [];
  const takeLimit: TakeLimit = (_limit, _owner, signal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        left.push(signal.aborted);
        reject(signal.reason);
      });
    });
  const simulated = new SimulatedJob(
    (ctx: Context) =>
      ctx.race({
        ask: (c) => c.step("ask", () => 1, { concurrency: { name: "upstream", limit: 1 } }),
        late: (c) => c.sleep("a minute", MINUTE),
      }),
    { steps: stepFeatures({ takeLimit }) },
  );
  expect(await simulated.toEnd()).toMatchObject({ kind: "complete", value: { winner: "late" } });
  expect(left).toEqual([true]);
});
