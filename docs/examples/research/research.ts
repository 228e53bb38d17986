import * as z from "zod";
import { defineDurableTool, HOUR } from "../../../core/index.ts";

export const research = defineDurableTool({
  name: "research",
  title: "Research a topic",
  description: "Asks a model many questions on a topic, as far as its budget of tokens goes.",
  input: z.object({ topic: z.string().min(1).max(200).describe("The topic.") }),
  output: z.object({
    answers: z.array(z.object({ question: z.string(), text: z.string() })),
    not_answered: z.array(z.object({ question: z.string(), reason: z.string() })),
  }),
  id: ({ topic }) => topic,
  deadline: 2 * HOUR,
  budget: { tokens: { limit: 8_000 } }, // with `onExceeded: "ask"` the user may allow more
});
