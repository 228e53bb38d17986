import * as z from "zod";
import { DAY, defineDurableTool, defineJob } from "../../../core/index.ts";

/** A job without a tool of its own: other jobs start it. */
export const parcel = defineJob({
  kind: "parcel",
  args: z.object({ order: z.int(), warehouse: z.string() }),
  result: z.object({ tracking: z.string() }),
  id: ({ order, warehouse }) => `${order}_${warehouse}`,
  deadline: 2 * DAY,
});

export const fulfilled = defineDurableTool({
  name: "send_order",
  title: "Send an order",
  description: "Sends an order in a parcel from each warehouse.",
  input: z.object({
    order: z.int().min(1).describe("The order's number."),
    warehouses: z.array(z.string()).min(1).max(5).describe("1 to 5 warehouses."),
  }),
  output: z.object({ parcels: z.array(z.string()) }),
  id: ({ order }) => order,
  otherArguments: "refuse", // an order is sent once, from the warehouses of the first call
  deadline: 3 * DAY,
});
