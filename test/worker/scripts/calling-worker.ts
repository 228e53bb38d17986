/** The product's worker with jobs that use the context's commands other than steps and sleeps. */
import { appendFile } from "node:fs/promises";
import * as z from "zod";
import { defineJob, HOUR, implement, NonRetryableError, SECOND } from "../../../core/index.ts";
import { runWorker } from "../../../worker/worker.ts";

const args = z.object({ n: z.number() });
const id = ({ n }: { n: number }) => n;

const nap = defineJob({ kind: "nap", args, id, result: z.string() });
const brood = defineJob({ kind: "brood", args, id });
const impatient = defineJob({ kind: "impatient", args, id });
const called = defineJob({ kind: "called", args, id });
const late = defineJob({ kind: "late", args, id });
const rated = defineJob({ kind: "rated", args, id });
const customer = z.object({ customer: z.string(), n: z.number() });
const visit = defineJob({
  kind: "visit",
  args: customer,
  id: ({ customer, n }) => `${customer}_${n}`,
  concurrency: { key: ({ customer }) => customer, limit: 1 },
});
const pair = defineJob({ kind: "pair", args, id, concurrency: { key: () => "all", limit: 2 } });
const stay = defineJob({ kind: "stay", args, id, concurrency: { key: () => "all", limit: 1 } });
const tidy = defineJob({ kind: "tidy", args, id, concurrency: { key: () => "all", limit: 1 } });
const pairs = defineJob({ kind: "pairs", args, id });
const crowd = defineJob({
  kind: "crowd",
  args: z.object({ customers: z.array(z.string()), count: z.number() }),
  id: () => 1,
});
const note = (line: string) => appendFile(process.env.VISITS ?? "", `${line}\n`);

await runWorker({
  functions: [
    implement(nap, async (ctx) => {
      await ctx.sleep("an hour", HOUR);
      return "rested";
    }),
    implement(brood, async (ctx, { n }) => {
      const numbers = Array.from({ length: 40 }, (_, i) => n + i);
      await ctx.all(numbers, (c, each) => c.start(nap, { n: each }));
      await ctx.step("feed", () => Promise.reject(new NonRetryableError("there is no food")));
    }),
    implement(impatient, async (ctx, { n }) => {
      const child = await ctx.start(nap, { n });
      const first = await ctx.race({ done: (c) => c.await(child), late: (c) => c.sleep("late", SECOND) });
      await child.cancel();
      const why = await child.result().catch((error) => error.status);
      return [first.winner, child.name, why];
    }),
    implement(called, async (ctx) => {
      const { result } = ctx.callback("payment", { for: 2 * SECOND });
      return result.catch((error) => error.name);
    }),
    implement(late, async (ctx, { n }) => ctx.sleep("until then", new Date(n)).then(() => "rested")),
    implement(visit, async (ctx, { customer, n }) => {
      await ctx.step("begin", () => note(`begin ${customer} ${n}`).then(() => null));
      await ctx.sleep("inside", 150);
      await ctx.step("end", () => note(`end ${customer} ${n}`).then(() => null));
    }),
    implement(pair, async (ctx, { n }) => {
      await ctx.step("begin", () => note(`pair begin ${n}`).then(() => null));
      await ctx.sleep("inside", 500);
      await ctx.step("end", () => note(`pair end ${n}`).then(() => null));
    }),
    implement(stay, async (ctx, { n }) => {
      await ctx.step("begin", () => note(`stay begin ${n}`).then(() => null));
      await ctx.sleep("an hour", HOUR);
    }),
    implement(tidy, async (ctx, { n }) => {
      try {
        await ctx.step("begin", () => note(`tidy begin ${n}`).then(() => null));
        await ctx.sleep("an hour", HOUR);
      } finally {
        const tidyUp = async () => {
          await new Promise((resolve) => setTimeout(resolve, 2_000));
          await note(`tidy end ${n}`);
          return null;
        };
        await ctx.cleanup((ctx) => ctx.step("tidy up", tidyUp));
      }
    }),
    implement(pairs, async (ctx, { n: count }) => {
      const all = [];
      for (let n = 1; n <= count; n++) all.push(await ctx.start(pair, { n }, { name: `pair ${n}` }));
      // The fourth job still waits for its turn.
      await all[3]?.cancel();
      const ended = await ctx.allSettled(all, (c, each) => c.await(each), { key: ({ name }) => name });
      return ended.map(({ status }) => status);
    }),
    implement(crowd, async (ctx, { customers, count }) => {
      const visits = [];
      for (let n = 1; n <= count; n++)
        for (const customer of customers)
          visits.push(await ctx.start(visit, { customer, n }, { name: `${customer} ${n}` }));
      for (const each of visits) await each.result();
      return visits.length;
    }),
    implement(rated, async (ctx) =>
      ctx.step("do", () => Date.now(), { rate: { name: "quota", limit: 2, per: SECOND } }),
    ),
  ],
});
