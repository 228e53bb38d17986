import { defineDurableTool } from "durable-mcp-edge";
import * as z from "zod";

export const exampleTool = defineDurableTool({
  name: "example_tool",
  title: "Example tool",
  description: "Tells the model that chooses among tools what this one does.",
  input: z.object({ subject: z.string().min(1).describe("Tells the model what is accepted.") }),
  output: z.object({ text: z.string() }),
  id: ({ subject }) => subject, // one job for each subject: a second call finds the first
});
