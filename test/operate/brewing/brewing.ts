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

/** Of a worker group that has no worker. */
export const wash = defineDurableTool({
  name: "wash",
  title: "Wash",
  description: "Washes a cup.",
  input: z.object({ cup: z.string() }),
  output: z.object({}),
  id: ({ cup }) => cup,
  deadline: DAY,
  group: "laundry",
});

/** Of which no worker has the function. */
export const dry = defineDurableTool({
  name: "dry",
  title: "Dry",
  description: "Dries a cup.",
  input: z.object({ cup: z.string() }),
  output: z.object({}),
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
