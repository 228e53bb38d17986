import * as z from "zod";
import { durableTool, HOUR } from "../../../core/index.ts";

/** The tool that both servers have: it fetches once, and returns what it got. */
export const fetchOnce = durableTool({
  name: "fetch_once",
  title: "Fetch once",
  description: "Fetches once and returns what it got.",
  input: z.object({ name: z.string() }),
  output: z.looseObject({}),
  id: ({ name }) => name,
  deadline: HOUR,
});
