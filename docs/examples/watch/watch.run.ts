import { HOUR, implement } from "../../../core/index.ts";
import { call, Services } from "../services.ts";
import { watch } from "./watch.ts";

/** A watch of a year: each day is a run of its own, so that the last day costs no more than the first. */
export const watchRun = implement(
  watch,
  async (ctx, { article, days, day, last }) => {
    let left = last;
    for (let hour = 0; hour < 24; hour++) {
      const now = await ctx.step("look", (step) => call<{ left: number }>(step, `/stock/${article}`));
      if (now.left !== left) await ctx.emit({ left: now.left, at: new Date(ctx.now()).toISOString() });
      left = now.left;
      await ctx.sleep("an hour", HOUR);
    }
    if (day + 1 < days) return ctx.continueAs({ article, days, day: day + 1, last: left });
    return { left: left ?? 0 };
  },
  { env: Services },
);
