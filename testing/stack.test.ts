import { describe, expect, test } from "vitest";
import { startStack, ToolCallFailed } from "./index.ts";

const DAY = 86_400;

describe("a stack in a test", async () => {
  test("has a clock: a timer of a day fires when the test has moved it a day on, and not before", async () => {
    await using stack = await startStack();
    const { job_name, fires_at } = await stack.call("set_timer", { timer_name: "tea", seconds: DAY });
    await stack.clock.advance((DAY - 60) * 1_000);
    expect(await stack.call("get_timer_status", { timer_name: "tea" })).toMatchObject({
      status: "running",
      remaining_seconds: expect.toSatisfy((left) => left <= 60 && left > 30),
    });
    await stack.clock.advance(60_000);
    const { statuses } = await stack.call("probe_status", { job_names: [job_name] });
    expect(statuses).toMatchObject([{ status: "complete", result: "complete" }]);
    expect(Date.parse(statuses[0].finished_at)).toBeGreaterThanOrEqual(Date.parse(fires_at));

    // Jobs that are started later are of the later day.
    const later = await stack.call("set_timer", { timer_name: "later", seconds: DAY });
    expect(Date.parse(later.fires_at) - Date.parse(fires_at)).toBeGreaterThanOrEqual(DAY * 1_000 - 1);
  });

  test("is killed part by part, and goes on", async () => {
    await using stack = await startStack();
    const { job_name } = await stack.call("set_timer", { timer_name: "tea", seconds: DAY });
    const parts = [stack.edge, stack.resonate, ...stack.workers];
    await Promise.all(parts.map((part) => part.kill()));
    await stack.resonate.start();
    await Promise.all([stack.edge.start(), stack.workers[0]?.start()]);
    await stack.clock.advance(DAY * 1_000);
    const { results } = await stack.call("await_result", { job_names: [job_name] });
    expect(results).toEqual({ [job_name]: "complete" });
  });

  test("tells what a tool refuses", async () => {
    await using stack = await startStack();
    const refused = stack.call("set_timer", { timer_name: "tea", seconds: -1 });
    await expect(refused).rejects.toThrow(ToolCallFailed);
    await expect(refused).rejects.toThrow("seconds");
  });
});
