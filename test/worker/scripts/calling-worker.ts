/** The product's worker with jobs that use the calls of the context beside steps and sleeps. */
import * as z from "zod";
import { defineJob, HOUR, implement, SECOND } from "../../../core/index.ts";
import { runWorker } from "../../../worker/process/run-worker.ts";

const args = z.object({ n: z.number() });
const id = ({ n }: { n: number }) => n;

const nap = defineJob({ kind: "nap", args, id, result: z.string() });
const impatient = defineJob({ kind: "impatient", args, id });
const rated = defineJob({ kind: "rated", args, id });

await runWorker({
  functions: [
    implement(nap, async (ctx) => {
      await ctx.sleep("an hour", HOUR);
      return "rested";
    }),
    implement(impatient, async (ctx, { n }) => {
      const child = await ctx.start(nap, { n });
      const first = await ctx.race({ done: (c) => c.await(child), late: (c) => c.sleep("late", SECOND) });
      await child.cancel();
      const why = await child.result().catch((error) => error.status);
      return [first.winner, child.name, why];
    }),
    implement(rated, async (ctx) =>
      ctx.step("do", () => Date.now(), { rate: { name: "quota", limit: 2, per: SECOND } }),
    ),
  ],
});
