import * as z from "zod";
import { DAY, defineDurableTool } from "../../../core/index.ts";

export const invoice = defineDurableTool({
  name: "send_invoice",
  title: "Send an invoice",
  description: "Sends an invoice, and a reminder when it is not paid in time.",
  input: z.object({ number: z.int().min(1).describe("The invoice's number.") }),
  output: z.object({ paid: z.boolean() }),
  id: ({ number }) => number,
  deadline: 60 * DAY,
  version: 2, // version 1 sent no reminder
});
