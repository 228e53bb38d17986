import { MINUTE } from "durable-mcp-edge";
import { startStack } from "durable-mcp-edge/testing";
import { expect, test } from "vitest";

test("example_tool ends with its result", { timeout: MINUTE }, async () => {
  await using stack = await startStack();
  const answer = stack.call("example_tool", { subject: "tea" });
  await stack.waitForJob("example_tool_tea");
  await stack.clock.advance(MINUTE);
  expect(await answer).toMatchObject({
    status: "complete",
    result: { text: expect.stringMatching(/^tea: begun at /) },
  });
});
