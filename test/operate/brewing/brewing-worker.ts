/** A worker whose code a test changes under its jobs. `CODE` selects the code. */
import { appendFile } from "node:fs/promises";
import * as z from "zod";
import { implement, JobCancelled } from "../../../core/index.ts";
import { runWorker } from "../../../worker/worker.ts";
import { brew, serve } from "./brewing.ts";

const { CODE, FOLDER } = process.env;
const schema = z.object({ strong: z.boolean() });

await runWorker({
  functions: [
    implement(brew, async (ctx, { cup }) => {
      await ctx.step(CODE === "changed" ? "boil" : "heat", () => "hot");
      try {
        const answer = await ctx.ask("how", { message: "Strong?", schema, answeredBy: "anyone" });
        return { strong: answer.action === "accept" && answer.content.strong };
      } catch (error) {
        if (error instanceof JobCancelled)
          await ctx.cleanup((ctx) => ctx.step("pour away", () => appendFile(`${FOLDER}/poured`, cup)));
        throw error;
      }
    }),
    implement(serve, async (ctx, { cup }) => (await ctx.start(brew, { cup })).result()),
  ],
});
