import * as z from "zod";
import { DAY, defineDurableTool } from "../../../core/index.ts";

export const purchase = defineDurableTool({
  name: "buy",
  title: "Buy something",
  description: "Orders something once it is approved: by the user, or after three days by the director.",
  input: z.object({
    item: z.string().min(1).max(80).describe("What to buy."),
    euros: z.number().min(0).describe("Its price."),
  }),
  output: z.object({ approved_by: z.enum(["user", "director"]), order: z.string() }),
  id: ({ item, euros }) => `${item}_${euros}`,
  deadline: 14 * DAY,
});
