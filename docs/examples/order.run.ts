import * as z from "zod";
import { DAY, implement } from "../../core/index.ts";
import { order } from "./order.ts";

export const orderRun = implement(order, async (ctx, { number }) => {
  const payment = ctx.callback("payment", { schema: z.object({ amount: z.number() }), for: 3 * DAY });
  await ctx.step("order", ({ idempotencyKey, signal }) =>
    place({ number, notify: payment.url }, idempotencyKey, signal),
  );
  const { amount } = await payment.result; // a TimeoutError after three days
  return { number, paid: amount };
});

async function place(order: object, key: string, signal: AbortSignal): Promise<void> {
  const url = `${process.env.SHOP_URL ?? "http://127.0.0.1:9000"}/orders`;
  const headers = { "content-type": "application/json", "idempotency-key": key };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(order), signal });
  if (!response.ok) throw new Error(`the shop answered ${response.status}`);
}
