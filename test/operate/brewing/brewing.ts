import * as z from "zod";
import { DAY, defineDurableTool } from "../../../core/index.ts";

/** Heats, then asks a question. Its clean-up pours the cup away. */
export const brew = defineDurableTool({
  name: "brew",
  title: "Brew",
  description: "Brews a cup, when somebody has said how strong.",
  input: z.object({ cup: z.string() }),
  output: z.object({ strong: z.boolean() }),
  id: ({ cup }) => cup,
  deadline: DAY,
});

/** Its worker group has no worker. */
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

/** No worker has its function. */
export const dry = defineDurableTool({
  name: "dry",
  title: "Dry",
  description: "Dries a cup.",
  input: z.object({ cup: z.string() }),
  output: z.object({}),
  id: ({ cup }) => cup,
  deadline: DAY,
});

/** Starts a `brew` job and waits for it. */
export const serve = defineDurableTool({
  name: "serve",
  title: "Serve",
  description: "Serves a cup when it is there.",
  input: z.object({ cup: z.string() }),
  output: z.object({ strong: z.boolean() }),
  id: ({ cup }) => cup,
  deadline: DAY,
});
