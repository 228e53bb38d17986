/** The outputs of a job have no gaps: readers stop at the first missing one, as concurrent outputs may be written out of order. */
import { expect, test } from "vitest";
import { JOB_NAME, SimulatedJob } from "../../../testing/simulation/simulated-job.ts";
import { type Context, HOUR, MINUTE } from "../../author/context.ts";
import { decodeValue } from "../../resonate/codec.ts";
import { outputId } from "../../resonate/ids.ts";

const outputsOf = ({ sim }: SimulatedJob, most: number): unknown[] =>
  Array.from({ length: most }, (_, i) => {
    const promise = sim.get(outputId(JOB_NAME, i + 1));
    return promise && decodeValue(promise.param);
  });

const fails = async () => Promise.reject(new Error("it is down"));

/** Two steps whose outcomes are written together, so that the second comes before the output that follows the first begins. */
const both = (then: () => Promise<unknown>) => ({
  a: async (c: Context) => {
    await c.step("x", () => 1);
    await c.emit("given up");
  },
  b: async (c: Context) => {
    await c.step("y", () => 1);
    return then();
  },
});

test("an output that a race gives up before it begins is written, and so are those after it", async () => {
  const simulated = new SimulatedJob(async (ctx: Context) => {
    await ctx.race(both(async () => 1));
    await ctx.emit("later");
    await ctx.sleep("a while", HOUR);
  });
  expect(await simulated.execute()).toEqual({ kind: "asleep" });
  expect(outputsOf(simulated, 3)).toEqual(["given up", "later", undefined]);
});

test("an output that a failed item of ctx.all gives up is written", async () => {
  const simulated = new SimulatedJob(async (ctx: Context) => {
    const { a, b } = both(fails);
    await ctx.all([a, b], (c, item) => item(c), { key: String }).catch(() => {});
    await ctx.emit("later");
  });
  await simulated.toEnd();
  expect(outputsOf(simulated, 2)).toEqual(["given up", "later"]);
});

test("an output that the deadline gives up is written before those of the clean-up", async () => {
  let attempts = 0;
  const simulated: SimulatedJob = new SimulatedJob(
    async (ctx: Context) => {
      try {
        await ctx.emit("first");
      } finally {
        await ctx.cleanup((ctx) => ctx.emit("clean-up"));
      }
    },
    {
      deadline: HOUR,
      // The output has not begun at the deadline, as the worker cannot confirm its lease until then.
      steps: [
        {
          attempt: async (_attempt, next) => {
            attempts += 1;
            if (attempts === 1) await simulated.clock.pause(HOUR + MINUTE);
            return next();
          },
        },
      ],
    },
  );
  await simulated.toEnd();
  expect(outputsOf(simulated, 2)).toEqual(["first", "clean-up"]);
});

test("an output that was given up by a worker that died before it wrote it is written by the next, and only once", async () => {
  let dies = true;
  const simulated: SimulatedJob = new SimulatedJob(async (ctx: Context) => {
    await ctx.race(both(async () => 1));
    if (dies) simulated.stop.abort();
    for (let i = 1; ; i++) await ctx.sleep(`night ${i}`, HOUR);
  });
  await expect(simulated.execute()).rejects.toThrow("the job is no longer run here");
  expect(outputsOf(simulated, 1)).toEqual([undefined]);
  dies = false;
  simulated.sim.kill(JOB_NAME);
  simulated.forget();
  await simulated.next();
  expect(outputsOf(simulated, 2)).toEqual(["given up", undefined]);
  await simulated.next();
  const warm = simulated.cost.requests;
  await simulated.next();
  expect(simulated.cost.requests).toBe(warm);
  // Without the memory of it, the output would be written again in each execution.
  simulated.journal.outputs.clear();
  await simulated.next();
  expect(simulated.cost.requests).toBe(warm + 1);
});
