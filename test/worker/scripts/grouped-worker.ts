/** The product's worker with a kind of job that has its own worker group. */
import * as z from "zod";
import { defineJob, implement } from "../../../core/index.ts";
import { runWorker } from "../../../worker/worker.ts";

const args = z.object({ n: z.number() });
const id = ({ n }: { n: number }) => n;
const here = () => process.env.WORKER_GROUP || "the deployment's";

const leaf = defineJob({ kind: "leaf", args, id });
const heavy = defineJob({ kind: "heavy", args, id, group: process.env.HEAVY_GROUP ?? "heavy" });
const root = defineJob({ kind: "root", args, id });

await runWorker({
  functions: [
    implement(leaf, async () => [here()]),
    implement(heavy, async (ctx, args) => [here(), await (await ctx.start(leaf, args)).result()].flat()),
    implement(root, async (ctx, args) => [here(), await (await ctx.start(heavy, args)).result()].flat()),
  ],
});
