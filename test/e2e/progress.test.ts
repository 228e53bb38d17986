/** What callers hear, and when, while their calls wait for a job that no worker executes. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PROGRESS_INTERVAL_MS } from "../../core/tools/wait-for.ts";
import { CLIENTS, type McpClient } from "../support/clients.ts";
import { type Stack, startStack } from "../support/stack.ts";

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ workers: 0, bindings: { WAIT_SECONDS: "1" } });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** The clients' timeout in milliseconds: shorter than a call with progress waits. */
const timeout = 40_000;

const place = { latitude: 47.6, longitude: -122.3 };
const CALLS: [tool: string, args: object, job: string][] = [
  ["weather_data", { ...place, year: 2013, month: 5 }, "weather_data_47.6_-122.3_2013_5"],
  ["weather_range", { ...place, from: "2013-05", to: "2013-06" }, "weather_range_47.6_-122.3_2013-05_2013-06"],
  ["timer", { timer_name: "long", seconds: 3_600 }, "timer_long"],
];

test("the first progress report comes before the most impatient client gives up", () => {
  expect(PROGRESS_INTERVAL_MS).toBeLessThanOrEqual(3_000);
});

describe.each(CLIENTS)("$kind", ({ connect }) => {
  let client: McpClient;
  beforeAll(async () => {
    client = await connect(stack.url);
  });
  afterAll(() => client?.close());

  test.each(CALLS)("without progress soon learns the name of the job: %s", async (tool, args, job) => {
    const { isError, content } = await client.callTool(tool, args, { timeout });
    expect(isError).toBe(false);
    expect(content).toMatchObject({ job_name: job, status: "running" });
    expect(content.note).toContain(`await_result(job_names: ["${job}"])`);
  });

  test.each(CALLS)("with progress hears of the job before it gives up: %s", async (tool, args, job) => {
    const left = new AbortController();
    const heard = await new Promise<{ progress: number; message?: string | undefined }>((resolve, reject) => {
      const options = { onprogress: resolve, signal: left.signal, timeout };
      client.callTool(tool, args, options).then(() => reject(new Error("it was answered")), reject);
    });
    left.abort();
    expect(heard.message).toMatch(new RegExp(`^${job.replaceAll(".", "\\.")}: `));
  });
});
