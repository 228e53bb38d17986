import * as z from "zod";
import { DAY, defineDurableTool } from "../../../core/index.ts";

export const order = defineDurableTool({
  name: "take_order",
  title: "Take an order",
  description: "Takes an order, and waits for the shop to tell that it was paid.",
  input: z.object({ number: z.int().min(1).describe("The order's number.") }),
  output: z.object({ number: z.int(), paid: z.number() }),
  id: ({ number }) => number,
  deadline: 7 * DAY,
});
