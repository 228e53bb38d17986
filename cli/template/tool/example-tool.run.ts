import { implement, MINUTE } from "durable-mcp-edge";
import { exampleTool } from "./example-tool.ts";

export const exampleToolRun = implement(exampleTool, async (ctx, { subject }) => {
  // Code with effects, or with results that may differ the next time, belongs in a step, whose outcome is recorded.
  const begun = await ctx.step("begin", () => new Date().toISOString());
  await ctx.sleep("a while", MINUTE); // holds no worker, survives any crash
  return { text: `${subject}: begun at ${begun}` };
});
