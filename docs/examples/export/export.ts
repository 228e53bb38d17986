import * as z from "zod";
import { DAY, defineDurableTool, MINUTE } from "../../../core/index.ts";

export const exported = defineDurableTool({
  name: "export_table",
  title: "Export a table",
  description: "Has the warehouse write a table to a file, and waits until the file is there.",
  input: z.object({ table: z.string().min(1).max(60).describe("The table's name.") }),
  output: z.object({ file: z.string(), rows: z.int() }),
  id: ({ table }) => table,
  deadline: DAY,
  freshFor: 10 * MINUTE, // a later call exports the table again
});
