/** Every argument of every tool, as long as a request may be: what is refused is refused at once, in few words. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { call, send } from "./support.ts";

/** In characters; some take several bytes. */
const LONG = 900_000;

/** Texts that a pattern, a normalisation or a parser may take as good as for ever over. */
const TEXTS: [what: string, text: string][] = [
  ["spaces and then something", `${" ".repeat(LONG)}[`],
  ["digits", "1".repeat(LONG)],
  ["dots and then something", `${".".repeat(LONG)}x`],
  ["what marks generations", "~1".repeat(LONG / 2)],
  ["combining marks", "e\u0323\u0301\u0302".repeat(LONG / 8)],
  ["letters that become many", "\ufdfa".repeat(LONG / 4)],
  ["a list in a list in a list", "[".repeat(LONG / 2) + "]".repeat(LONG / 2)],
  ["a list of names", JSON.stringify(Array.from({ length: LONG / 10 }, (_, n) => `n${n}`))],
];

/** Something that is right for each, so that what is long is looked at. */
const RIGHT = {
  ...{ latitude: 1, longitude: 1, year: 2013, month: 1, from: "2012-01", to: "2012-02" },
  ...{ timer_name: "x", seconds: 600, job_names: ["timer_none"], job_name: "timer_none", question: "q", answer: "{}" },
};

let resonate: Resonate;
let stack: Stack;
beforeAll(async () => {
  resonate = await startResonate();
  stack = await startStack({ resonate, workers: 0, bindings: { WAIT_SECONDS: "1" } });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
});

test.each(TEXTS)("%s", async (_what, text) => {
  const listed = await send(stack.url, { body: { jsonrpc: "2.0", id: 1, method: "tools/list" } });
  const tools: { name: string; inputSchema: { properties: object } }[] = listed.messages[0].result.tools;
  expect(tools.length).toBeGreaterThan(8);
  for (const { name, inputSchema } of tools) {
    for (const argument of Object.keys(inputSchema.properties)) {
      if (argument === "timeout_seconds") continue;
      const answer = await send(stack.url, { body: call(name, { ...RIGHT, timeout_seconds: 1, [argument]: text }) });
      const { result } = answer.messages.at(-1);
      expect([name, argument, result?.content[0].text.length < 5_000]).toEqual([name, argument, true]);
    }
  }
});
