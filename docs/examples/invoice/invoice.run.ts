import { type Context, DAY, implement, type Step } from "../../../core/index.ts";
import { call, Services } from "../services.ts";
import { invoice } from "./invoice.ts";

export const invoiceRun = implement(
  invoice,
  async (ctx, { number }) => {
    await sendOnly(ctx, { number });
    const isPaid = async (look: Step<Services>) => (await call<{ paid: boolean }>(look, `/invoices/${number}`)).paid;
    const first = await ctx.race({
      paid: (ctx) => ctx.until("paid", { every: DAY }, isPaid),
      late: (ctx) => ctx.sleep("30 days", 30 * DAY),
    });
    if (first.winner === "late") await ctx.step("remind", (step) => call(step, `/invoices/${number}/remind`, {}));
    return { paid: first.winner === "paid" };
  },
  { env: Services, earlier: { 1: sendOnly } },
);

/** Version 1, with which its running jobs go on. */
async function sendOnly(ctx: Context<Services>, { number }: { number: number }) {
  await ctx.step("send", (step) => call(step, `/invoices/${number}/send`, {}));
  return { paid: false };
}
