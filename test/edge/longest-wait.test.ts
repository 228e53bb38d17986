import { expect, test } from "vitest";
import { programOf } from "../support/programs.ts";
import { rpc } from "../support/rpc.ts";
import { startStack } from "../support/stack.ts";

test("a wait of 300 seconds is answered after 285, before clients give up, with a note on how to go on", async () => {
  await using stack = await startStack({
    programs: { edge: "test/edge/hasty-edge.ts", worker: programOf("worker") },
  });
  const call = async (name: string, args: object) =>
    (await rpc(stack.url, "tools/call", { name, arguments: args }, { capabilities: {} })).result.structuredContent;
  await call("set_timer", { timer_name: "long", seconds: 3_600 });
  const running = ["timer_long"];
  expect(await call("await_result", { job_names: running, timeout_seconds: 300 })).toEqual({
    results: {},
    errors: {},
    running,
    note: "Await those running again: this wait ended after 285 seconds.",
  });
  // A wait that lasts its full time has no note.
  expect(await call("await_result", { job_names: running, timeout_seconds: 100 })).toEqual({
    results: {},
    errors: {},
    running,
  });
});
