import { CronExpressionParser } from "cron-parser";
import { implement } from "../../../core/index.ts";
import { call, Services } from "../services.ts";
import { nightly } from "./nightly.ts";

/** A report each night at the same local time: when the clocks change, 23 or 25 hours lie between two reports. */
export const nightlyRun = implement(
  nightly,
  async (ctx, { from, nights, timezone }) => {
    // In a step, although it has no effect: the library uses random numbers, which are refused outside steps.
    const times = await ctx.step("times", () => {
      const cron = CronExpressionParser.parse("0 3 * * *", { currentDate: `${from}T00:00:00`, tz: timezone });
      return cron.take(nights).map((time) => time.toDate().toISOString());
    });
    const reports = [];
    for (const at of times) {
      await ctx.sleep("night", new Date(at));
      const { rows } = await ctx.step("report", (step) => call<{ rows: number }>(step, "/reports", { at }));
      await ctx.emit({ at, rows });
      reports.push({ at, rows });
    }
    return { reports };
  },
  { env: Services },
);
