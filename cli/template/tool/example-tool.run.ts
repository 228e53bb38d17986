import { implement, MINUTE } from "durable-mcp-edge";
import { exampleTool } from "./example-tool.ts";

export const exampleToolRun = implement(exampleTool, async (ctx, { subject }) => {
  // Code that has an effect, or may differ in a replay, belongs in a step: its outcome is recorded.
  const begun = await ctx.step("begin", () => new Date().toISOString());
  await ctx.sleep("a while", MINUTE); // holds no worker, survives any crash
  return { text: `${subject}: begun at ${begun}` };
});
