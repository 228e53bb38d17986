/** A worker with a job of ten nearly empty steps, half of them side by side. The job runs again after a sleep. */
import { implement } from "../../../core/index.ts";
import { runWorker } from "../../../worker/worker.ts";
import { tenSteps } from "./ten-steps.ts";

const look = async ({ signal }: { signal: AbortSignal }) => Date.now() > 0 && !signal.aborted;

await runWorker({
  functions: [
    implement(tenSteps, async (ctx) => {
      let done = 0;
      for (let n = 0; n < 5; n++) done += Number(await ctx.step(`step ${n}`, look));
      await ctx.sleep("a moment", 10);
      const list = await ctx.all([0, 1, 2, 3, 4], (item) => item.step("look", look));
      return done + list.length;
    }),
  ],
});
