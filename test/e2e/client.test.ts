/** `createClient`: a program calls jobs, with types from their definitions. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient, JobNotComplete, ToolRefused } from "../../client/index.ts";
import { setTimer } from "../../tools/timer/timer.ts";
import { weatherRange } from "../../tools/weather/range.ts";
import { bearerBindings } from "../auth/support.ts";
import { type Stack, startStack } from "../support/stack.ts";

const TOKENS = { ada: "static-token-of-ada", grace: "static-token-of-grace" };
const tools = { setTimer, weatherRange };

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ workers: 1, bindings: bearerBindings(TOKENS) });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const clientOf = (token: string) => createClient({ url: stack.url, token, tools });

test("a job is started at once, followed to its end, and its result read whole", async () => {
  await using jobs = clientOf(TOKENS.ada);
  const job = await jobs.start("weatherRange", { latitude: 47.6, longitude: -122.3, from: "2012-01", to: "2013-12" });
  const seen: string[] = [];
  for await (const { status } of jobs.follow(job)) seen.push(status);
  expect([seen[0], seen.at(-1)]).toEqual(["running", "complete"]);
  const result = await jobs.wait(job);
  expect(result.months.map(({ weather }) => weather?.daily.time.length)).toContain(29);
  expect(result.months).toHaveLength(24);
  // The same arguments name the same job, and `wait` also takes the name alone.
  expect(
    await jobs.start("weatherRange", { latitude: 47.6, longitude: -122.3, from: "2012-01", to: "2013-12" }),
  ).toEqual(job);
  expect(await jobs.wait(job.name)).toEqual(result);
});

test("a question is answered, and an answer to one that was not asked is refused", async () => {
  await using jobs = clientOf(TOKENS.ada);
  const args = { latitude: 47.6, longitude: -122.3, from: "2012-01", to: "2014-12" };
  const job = await jobs.start("weatherRange", args);
  await expect(jobs.answer(job, "else", {})).rejects.toThrow(ToolRefused);
  for await (const { waiting_for = [] } of jobs.follow(job)) {
    for (const { question } of waiting_for) await jobs.answer(job, question, null);
  }
  await expect(jobs.wait(job)).rejects.toThrow(/failed/);
});

test("a cancelled job and another caller's job have no result; a wait that is aborted leaves its job running", async () => {
  await using jobs = clientOf(TOKENS.ada);
  await using others = clientOf(TOKENS.grace);
  const job = await jobs.start("setTimer", { timer_name: "tea", seconds: 600 });
  await expect(jobs.wait(job, AbortSignal.timeout(500))).rejects.toThrow(/timeout/);
  await expect(others.wait(job)).rejects.toMatchObject({ status: "not_found" });
  expect([await others.cancel(job), await jobs.cancel(job), await jobs.cancel(job)]).toEqual([false, true, true]);
  await expect(jobs.wait(job)).rejects.toThrow(JobNotComplete);
  await expect(jobs.start("setTimer", { timer_name: "tea", seconds: -1 })).rejects.toThrow(/seconds/);
  await expect(clientOf("wrong").cancel(job)).rejects.toThrow(/refuses the token/);
});

test("arguments and results have the types of the definitions", async () => {
  await using jobs = clientOf(TOKENS.ada);
  // @ts-expect-error: no such tool
  await expect(jobs.start("unheard_of", {})).rejects.toThrow(/no tool/);
  // @ts-expect-error: seconds are missing
  await expect(jobs.start("setTimer", { timer_name: "tea" })).rejects.toThrow(/seconds/);
});
