import { type Context, implement, JobFailed, NonRetryableError } from "../../core/index.ts";
import { type Month, month } from "./month.ts";
import { CONFIRM, CONFIRM_ABOVE, monthsOf, type Range, range } from "./range.ts";

/** Gathers each month of a range with that month's own job, so that months which were gathered before cost nothing. */
export const gatherRange = implement(range, async (ctx, asked) => {
  const months = monthsOf(asked);
  const total = months.length;
  if (total > CONFIRM_ABOVE && !asked.confirmed && !(await confirms(ctx, asked, total))) {
    // This is a failure, because a result would be kept, and the range could not be gathered later.
    throw new NonRetryableError(`declined: none of the ${total} requests was made`);
  }
  let done = 0;
  const gathered = await ctx.all(
    months,
    async (ctx, one) => {
      const outcome = await gather(ctx, one);
      done += 1;
      ctx.progress(done, total, `${done} of ${total} months`);
      return outcome;
    },
    { name: "months", key: ({ year, month }) => `${year}-${String(month).padStart(2, "0")}` },
  );
  const missing = gathered.filter((one) => "error" in one);
  if (missing.length === total) throw new NonRetryableError(`no month was gathered: ${missing[0]?.error}`);
  return { months: gathered, ...(missing.length > 0 && { missing: missing.length }) };
});

async function gather(ctx: Context, one: Month) {
  const gathering = await ctx.start(month, one);
  const which = { year: one.year, month: one.month, job_name: gathering.name };
  try {
    return { ...which, weather: await gathering.result() };
  } catch (error) {
    if (!(error instanceof JobFailed)) throw error;
    return { ...which, error: error.message };
  }
}

async function confirms(ctx: Context, { from, to }: Range, total: number): Promise<boolean> {
  const answer = await ctx.ask(CONFIRM, {
    message: `Gathering ${from} to ${to} takes ${total} requests to the weather archive. Go on?`,
    // Accepting means agreeing. A checkbox would ask for a second confirmation.
    requestedSchema: { type: "object", properties: {} },
  });
  return answer.action === "accept" && answer.content.confirm !== false;
}
