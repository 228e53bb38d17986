import * as z from "zod";
import { DAY, defineDurableTool } from "../../../core/index.ts";

/** Asks before it ends, and pours away what it has heated when it is cancelled. */
export const brew = defineDurableTool({
  name: "brew",
  title: "Brew",
  description: "Brews a cup, when somebody has said how strong.",
  input: z.object({ cup: z.string() }),
  output: z.object({ strong: z.boolean() }),
  id: ({ cup }) => cup,
  deadline: DAY,
});

/** Waits for a cup. */
export const serve = defineDurableTool({
  name: "serve",
  title: "Serve",
  description: "Serves a cup when it is there.",
  input: z.object({ cup: z.string() }),
  output: z.object({ strong: z.boolean() }),
  id: ({ cup }) => cup,
  deadline: DAY,
});
