import * as z from "zod";
import { defineDurableTool, event, implement } from "../../../core/index.ts";

export const watchPrice = defineDurableTool({
  name: "watch_price",
  title: "Watch a price",
  description: "Tells a price as it changes.",
  input: z.object({ of: z.string().describe("Of what."), prices: z.array(z.number()).describe("The prices.") }),
  output: z.object({ last: z.number() }),
  events: [event({ name: "price.changed", payload: z.object({ price: z.number().max(100) }) })],
  id: ({ of }) => of,
});

export const watchPriceRun = implement(watchPrice, async (ctx, { prices }) => {
  for (const price of prices) {
    await ctx.event("price.changed", { price });
    await ctx.emit({ seen: price });
    await ctx.sleep("a while", 1_000);
  }
  return { last: prices.at(-1) ?? 0 };
});
