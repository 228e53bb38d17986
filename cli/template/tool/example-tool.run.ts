import { implement, MINUTE } from "durable-mcp-edge";
import { exampleTool } from "./example-tool.ts";

export const exampleToolRun = implement(exampleTool, async (ctx, { subject }) => {
  const startedAt = new Date(ctx.now()).toISOString(); // the same in each replay
  // Code that has an effect, or may differ in a replay, belongs in a step: its outcome is recorded.
  const text = await ctx.step("write", () => `${subject}: begun at ${startedAt}`);
  await ctx.sleep("a while", MINUTE); // holds no worker, survives any crash
  return { text };
});
