import * as z from "zod";
import { defineDurableTool, HOUR, MINUTE } from "../../../core/index.ts";

export const quotes = defineDurableTool({
  name: "compare_carriers",
  title: "Compare carriers",
  description: "Asks carriers for a price, in dollars, and tells the cheapest.",
  input: z.object({
    kilos: z.number().min(0.1).max(1_000).describe("The weight, in kilograms."),
    carriers: z.array(z.string()).min(1).max(20).describe("The carriers to ask."),
  }),
  output: z.object({ carrier: z.string(), dollars: z.number(), silent: z.array(z.string()) }),
  id: ({ kilos, carriers }) => `${kilos}_${carriers.toSorted().join("_")}`,
  deadline: HOUR,
  freshFor: 30 * MINUTE,
});
