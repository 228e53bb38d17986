import type { Context } from "@resonatehq/sdk/async";
import type { Timer } from "../../functions/jobs/index.ts";

/** Sleeps until the timer is due, holding no worker; a timer that came due while none was running completes at once. */
export async function sleepUntilDue(ctx: Context, { fires_at }: Timer): Promise<string> {
  await ctx.sleep({ until: new Date(fires_at) });
  return "complete";
}
