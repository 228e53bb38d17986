import * as z from "zod";
import { DAY, defineDurableTool, hashed } from "../../../core/index.ts";

export const imported = defineDurableTool({
  name: "import_contacts",
  title: "Import contacts",
  description: "Puts contacts into a customer's address book.",
  input: z.object({
    customer: z.string().min(1).max(40).describe("The customer."),
    contacts: z.array(z.string()).min(1).max(10_000).describe("1 to 10,000 names."),
  }),
  output: z.object({ added: z.int() }),
  id: async ({ customer, contacts }) => `${customer}_${await hashed(contacts)}`,
  deadline: DAY,
  // An address book takes one import at a time: the others wait their turn, in the order of their starts.
  concurrency: { key: ({ customer }) => customer, limit: 1 },
});
