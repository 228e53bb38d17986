/** A blocked caller's requests are refused at once, and its streams end soon, even at an edge of an earlier deployment. */
import { expect, test } from "vitest";
import { type Notified, streamAt } from "../events/support.ts";
import { call, send } from "../limits/support.ts";
import { startStack } from "../support/stack.ts";
import { bearer, bearerBindings, callerAt } from "./support.ts";

test("a blocked caller's stream at an earlier edge ends within half a minute, and another caller's goes on", async () => {
  const bindings = bearerBindings({ ada: "static-token-of-ada", bob: "static-token-of-bob" });
  await using stack = await startStack({
    workers: 0,
    bindings: { ...bindings, BLOCKED_CALLERS: "ada" },
    beside: { BLOCKED_CALLERS: "" },
  });
  const wait = (token: string) => {
    const body = call("await_result", { job_names: ["timer_long"], timeout_seconds: 60 });
    return send(stack.beside, { headers: bearer(token), body });
  };
  for (const token of ["static-token-of-ada", "static-token-of-bob"])
    await callerAt(stack.beside, token).call("set_timer", { timer_name: "long", seconds: 3_600 });
  const others = wait("static-token-of-bob");
  const told: Notified[] = [];
  const stream = async () => {
    const never = new AbortController().signal;
    for await (const one of streamAt(stack.beside, { name: "job.ended" }, never, "static-token-of-ada")) told.push(one);
  };
  const hers = Promise.all([wait("static-token-of-ada"), stream()]);
  expect(await Promise.race([hers.then(() => "hers"), others.then(() => "others")])).toBe("hers");
  const [{ text }] = await hers;
  expect(text).not.toContain('"result"');
  // A stream of events ends with the reason and a result.
  const _meta = { "io.modelcontextprotocol/subscriptionId": 1 };
  const last = told.slice(-2);
  expect(last.map(({ method }) => method)).toEqual(["notifications/events/terminated", undefined]);
  expect(last[0]?.params).toEqual({ error: { code: -32024, message: expect.stringContaining("blocked") }, _meta });
  expect(last[1]?.result).toEqual({ resultType: "complete", _meta });
  const refused = await send(stack.url, { headers: bearer("static-token-of-ada"), body: call("list_jobs") });
  expect(refused.status).toBe(403);
  await callerAt(stack.beside, "static-token-of-bob").call("cancel_job", { job_names: ["timer_long"] });
  expect((await others).text).toContain('"timer_long":"cancelled');
});
