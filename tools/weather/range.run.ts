import { type Context, implement, JobFailed, NonRetryableError } from "../../core/index.ts";
import { type Month, month } from "./month.ts";
import { CONFIRM_QUESTION, MAX_UNCONFIRMED_MONTHS, monthsOf, type Range, range } from "./range.ts";

/** Gathers each month of a range with that month's own job, so that months which were gathered before cost nothing. */
export const gatherRange = implement(range, async (ctx, args) => {
  const months = monthsOf(args);
  const total = months.length;
  if (total > MAX_UNCONFIRMED_MONTHS && !args.confirmed && !(await confirms(ctx, args, total))) {
    // This is a failure, because a result would be kept, and the range could not be gathered later.
    throw new NonRetryableError(`declined: none of the ${total} requests was made`);
  }
  let done = 0;
  const outcomes = await ctx.all(
    months,
    async (ctx, monthArgs) => {
      const outcome = await gather(ctx, monthArgs);
      done += 1;
      ctx.progress(done, total, `${done} of ${total} months`);
      return outcome;
    },
    { name: "months", key: ({ year, month }) => `${year}-${String(month).padStart(2, "0")}` },
  );
  const missing = outcomes.filter((outcome) => "error" in outcome);
  if (missing.length === total) throw new NonRetryableError(`no month was gathered: ${missing[0]?.error}`);
  return { months: outcomes, ...(missing.length > 0 && { missing: missing.length }) };
});

async function gather(ctx: Context, args: Month) {
  const job = await ctx.start(month, args, { whenParentEnds: "cancel" });
  const id = { year: args.year, month: args.month, job_name: job.name };
  try {
    return { ...id, weather: await job.result() };
  } catch (error) {
    if (!(error instanceof JobFailed)) throw error;
    return { ...id, error: error.message };
  }
}

async function confirms(ctx: Context, { from, to }: Range, total: number): Promise<boolean> {
  const answer = await ctx.ask(CONFIRM_QUESTION, {
    message: `Gathering ${from} to ${to} takes ${total} requests to the weather archive. Continue?`,
    // Accepting means agreeing. A checkbox would ask for a second confirmation.
    requestedSchema: { type: "object", properties: {} },
  });
  return answer.action === "accept" && answer.content.confirm !== false;
}
