import { implement, MINUTE, NonRetryableError } from "../../../core/index.ts";
import { call, Services } from "../services.ts";
import { quotes } from "./quotes.ts";

/** A fan-in: each carrier has two minutes, and those that fail or are late are left out. */
export const quotesRun = implement(
  quotes,
  async (ctx, { kilos, carriers }) => {
    const asked = await ctx.allSettled(carriers, async (ctx, carrier) => {
      const { euros } = await ctx.timeout(2 * MINUTE, (ctx) =>
        ctx.step("quote", (step) => call<{ euros: number }>(step, `/carriers/${carrier}/quotes`, { kilos })),
      );
      return { carrier, euros };
    });
    const offers = asked.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
    const [best] = offers.toSorted((a, b) => a.euros - b.euros);
    if (!best) throw new NonRetryableError("no carrier has made an offer");
    // The first answer counts. A bank that fails has not answered.
    const { value: rate } = await ctx.any({
      national: (ctx) => ctx.step("rate", (step) => call<{ dollars: number }>(step, "/banks/national")),
      private: (ctx) => ctx.step("rate", (step) => call<{ dollars: number }>(step, "/banks/private")),
    });
    const silent = carriers.filter((carrier) => !offers.some((offer) => offer.carrier === carrier));
    return { carrier: best.carrier, dollars: best.euros * rate.dollars, silent };
  },
  { env: Services },
);
