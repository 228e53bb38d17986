import { type Context, DAY, implement } from "../../core/index.ts";
import { invoice } from "./invoice.ts";

export const invoiceRun = implement(
  invoice,
  async (ctx, { number }) => {
    await ctx.step("send", ({ idempotencyKey }) => post(`/invoices/${number}/send`, idempotencyKey));
    const first = await ctx.race({
      paid: (ctx) => ctx.until("paid", { every: DAY }, () => isPaid(number)),
      late: (ctx) => ctx.sleep("30 days", 30 * DAY),
    });
    if (first.winner === "late") {
      await ctx.step("remind", ({ idempotencyKey }) => post(`/invoices/${number}/remind`, idempotencyKey));
    }
    return { paid: first.winner === "paid" };
  },
  { earlier: { 1: sendOnly } },
);

/** Jobs that were started with version 1 end as they began. */
async function sendOnly(ctx: Context, { number }: { number: number }) {
  await ctx.step("send", ({ idempotencyKey }) => post(`/invoices/${number}/send`, idempotencyKey));
  return { paid: false };
}

const BILLING = process.env.BILLING_URL ?? "http://127.0.0.1:9000";

async function post(path: string, key: string): Promise<void> {
  const response = await fetch(BILLING + path, { method: "POST", headers: { "idempotency-key": key } });
  if (!response.ok) throw new Error(`billing answered ${response.status}`);
}

async function isPaid(number: number): Promise<boolean> {
  const response = await fetch(`${BILLING}/invoices/${number}`);
  return (await response.json()).paid === true;
}
