/** The product's worker with jobs that look at something again and again. */
import { existsSync } from "node:fs";
import * as z from "zod";
import { defineJob, implement } from "../../../core/index.ts";
import { runWorker } from "../../../worker/worker.ts";

const args = z.object({ pause: z.number(), file: z.string() });
const loop = (kind: string) => defineJob({ kind, args, id: () => "x" });

await runWorker({
  functions: [
    implement(loop("looks_until"), async (ctx, { pause, file }) => {
      return ctx.until("the file to be there", { every: pause }, () => existsSync(file));
    }),
    implement(loop("looks_by_hand"), async (ctx, { pause, file }) => {
      while (!(await ctx.step("look", () => existsSync(file)))) await ctx.sleep("pause", pause);
      return true;
    }),
  ],
});
