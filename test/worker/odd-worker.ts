/** The product's worker with jobs that misbehave, and some that tell what goes on around them. */

import * as z from "zod";
import { type DurableFunction, durable, type JobFunction } from "../../worker/functions/durable.ts";
import { runWorker } from "../../worker/run.ts";

function job(func: string, run: JobFunction<unknown>): DurableFunction {
  return durable({ func, args: z.unknown(), owns: (name) => name.startsWith(func) }, run);
}

const circular: Record<string, unknown> = {};
circular.self = circular;

let running = 0;

await runWorker(() => [
  job("echo", async (_ctx, args) => args),
  job("returns_bigint", async () => 10n),
  job("returns_circular", async () => circular),
  job("step_returns_bigint", async (ctx) => {
    await ctx.run(async () => 10n);
  }),
  job("throws_nothing", async () => {
    throw undefined;
  }),
  job("throws_circular", async () => {
    throw circular;
  }),
  job("leaves_a_rejection", async () => {
    void Promise.reject(new Error("nobody waits for this"));
    return "done";
  }),
  job("never_returns", () => new Promise(() => {})),
  /** Returns how many of its kind ran at once, itself included. */
  job("counts", async (ctx) =>
    ctx.run(async () => {
      running++;
      await new Promise((resolve) => setTimeout(resolve, 100));
      return running--;
    }),
  ),
]);
