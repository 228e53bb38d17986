import * as z from "zod";
import { DAY, implement } from "../../../core/index.ts";
import { call, Services } from "../services.ts";
import { order } from "./order.ts";

export const orderRun = implement(
  order,
  async (ctx, { number }) => {
    const payment = ctx.callback("payment", { schema: z.object({ amount: z.number() }), for: 3 * DAY });
    await ctx.step("order", (step) => call(step, "/orders", { number, notify: payment.url }));
    const { amount } = await payment.result; // a TimeoutError after three days
    return { number, paid: amount };
  },
  { env: Services },
);
