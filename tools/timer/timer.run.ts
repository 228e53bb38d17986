import { implement } from "../../core/index.ts";
import { timer } from "./timer.ts";

/** Sleeps until the timer is due, without occupying a worker. A timer that is already due completes at once. */
export const sleepUntilDue = implement(timer, async (ctx, { fires_at }) => {
  await ctx.sleep("until due", new Date(fires_at));
  return "complete";
});
