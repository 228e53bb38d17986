/** Labels: a start sets them, the list finds them, and events carry them. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient } from "../../client/index.ts";
import { setTimer } from "../../tools/timer/timer.ts";
import { bearerBindings, callerAt, type TestCaller } from "../auth/support.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { eventsAt } from "./support.ts";

const TOKENS = { ada: "static-token-of-ada", bob: "static-token-of-bob" };
const LABELS = "durable-mcp/labels";

let stack: Stack;
let ada: TestCaller;
beforeAll(async () => {
  stack = await startStack({ workers: 1, bindings: bearerBindings(TOKENS) });
  ada = callerAt(stack.url, TOKENS.ada);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const found = async (search: string, caller = ada) =>
  (await caller.call("list_jobs", { search })).jobs.map(
    ({ job_name, labels }: { job_name: string; labels?: string[] }) => ({
      job_name,
      labels,
    }),
  );

test("a start's labels appear in its caller's list and events, and narrow a search and a subscription", async () => {
  await using told = await eventsAt(stack.url, TOKENS.ada);
  const { cursor } = await told.poll({ name: "job.ended" });
  await using jobs = createClient({ url: stack.url, token: TOKENS.ada, tools: { setTimer } });
  await jobs.start("setTimer", { timer_name: "bread", seconds: 1 }, { labels: ["Release 42", "nightly"] });
  const _meta = { [LABELS]: ["release 43"] };
  const args = { timer_name: "cake", seconds: 1 };
  await told.client.callTool({ name: "set_timer", arguments: args, _meta } as never);
  await ada.call("set_timer", { timer_name: "plain", seconds: 1 });
  const bread = { job_name: "timer_bread", labels: ["Release 42", "nightly"] };
  expect(await found("release nightly")).toEqual([bread]);
  expect(await found("RELEASE")).toEqual([{ job_name: "timer_cake", labels: ["release 43"] }, bread]);
  expect((await found("plai")).map(({ job_name }: { job_name: string }) => job_name)).toEqual(["timer_plain"]);
  expect(await found("release", callerAt(stack.url, TOKENS.bob))).toEqual([]);
  const arguments_ = { labels: ["nightly", "release 43"] };
  const { events } = await told.collect(cursor, 2, { name: "job.ended", arguments: arguments_ });
  const labels = Object.fromEntries(events.map(({ data }) => [data.job_name, data.labels]));
  expect(labels).toEqual({ timer_bread: ["Release 42", "nightly"], timer_cake: ["release 43"] });
  const none = await told.poll({ name: "job.ended", cursor, arguments: { labels: ["other"] } });
  expect(none.events).toEqual([]);
});

test("malformed labels are refused, and nothing is started", async () => {
  await using told = await eventsAt(stack.url, TOKENS.ada);
  for (const labels of ["text", [""], ["x".repeat(65)], [1], Array.from({ length: 9 }, (_, i) => `l${i}`), ["a\nb"]]) {
    const params = { name: "set_timer", arguments: { timer_name: "none", seconds: 1 }, _meta: { [LABELS]: labels } };
    const { isError, content } = (await told.client.callTool(params as never)) as {
      isError: boolean;
      content: object[];
    };
    expect([isError, JSON.stringify(content)]).toEqual([true, expect.stringContaining("up to 8 texts of 1 to 64")]);
  }
  expect(await found("timer_none")).toEqual([]);
});
