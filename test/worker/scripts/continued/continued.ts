import * as z from "zod";
import { DAY, defineDurableTool } from "../../../../core/index.ts";

/** Walks rounds, each in its own run, and writes them to a file. */
export const patrol = defineDurableTool({
  name: "patrol",
  title: "Patrol",
  description: "Walks rounds.",
  input: z.object({ of: z.string().describe("Of what."), round: z.int(), last: z.int(), ms: z.int() }),
  output: z.object({ rounds: z.number(), spent: z.number() }),
  id: ({ of }) => of,
  deadline: DAY,
  onRestart: "resume",
  budget: { steps: { limit: 1_000 } },
});
