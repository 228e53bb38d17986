import * as z from "zod";
import { defineDurableTool, HOUR } from "../../../core/index.ts";

/** The tool of both servers: fetches once and returns the answer. */
export const fetchOnce = defineDurableTool({
  name: "fetch_once",
  title: "Fetch once",
  description: "Fetches once and returns what it got.",
  input: z.object({ name: z.string() }),
  output: z.looseObject({}),
  id: ({ name }) => name,
  deadline: HOUR,
});
