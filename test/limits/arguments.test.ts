/** Arguments and parameters as long as a request may be are refused at once, in few words. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { malformed, SHAPES, VALID } from "./malformed.ts";
import { call, send } from "./support.ts";

/** In characters; some take several bytes. `FUZZ_TIMES=4` makes requests as long as they may be. */
const LONG = Math.min(900_000, 240_000 * Number(process.env.FUZZ_TIMES ?? 1));

/** Texts that may make a pattern, a normalization or a parser take extremely long. */
const TEXTS: [what: string, text: string][] = [
  ["spaces and then something", `${" ".repeat(LONG)}[`],
  ["digits", "1".repeat(LONG)],
  ["dots and then something", `${".".repeat(LONG)}x`],
  ["marks of generations", "~1".repeat(LONG / 2)],
  ["combining marks", "e\u0323\u0301\u0302".repeat(LONG / 8)],
  ["letters that normalize to many", "\ufdfa".repeat(LONG / 4)],
  ["lists nested as deep as possible", "[".repeat(LONG / 2) + "]".repeat(LONG / 2)],
  ["a list of names", JSON.stringify(Array.from({ length: LONG / 10 }, (_, n) => `n${n}`))],
];

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

async function tools(): Promise<{ name: string; inputSchema: { properties: object } }[]> {
  const listed = await send(stack.url, { body: { jsonrpc: "2.0", id: 1, method: "tools/list" } });
  expect(listed.messages[0].result.tools.length).toBeGreaterThan(8);
  return listed.messages[0].result.tools;
}

test.each(TEXTS)("%s", async (_what, text) => {
  for (const { name, inputSchema } of await tools()) {
    for (const argument of Object.keys(inputSchema.properties)) {
      if (argument === "timeout_seconds") continue;
      const answer = await send(stack.url, { body: call(name, { ...VALID, timeout_seconds: 1, [argument]: text }) });
      const { result } = answer.messages.at(-1);
      expect([name, argument, result?.content[0].text.length < 5_000]).toEqual([name, argument, true]);
    }
  }
});

/** In characters: content that costs more than its bytes shows long before the largest body. */
const LARGE_CHARACTERS = Math.min(900_000, 100_000 * Number(process.env.FUZZ_TIMES ?? 1));

// What these requests cost beside a `ping` is a section of the benchmark.
test.each(SHAPES)("%s is refused in few words", async (shape) => {
  for (const { what, path, headers, body } of malformed(shape, LARGE_CHARACTERS, await tools())) {
    const signal = AbortSignal.timeout(10_000);
    const response = await fetch(stack.origin + path, { method: "POST", headers, body: JSON.stringify(body), signal });
    const { length } = await response.text();
    // A list of tools is long for every caller.
    const isShort = length < 5_000 || what.includes("tools/list");
    expect([what, response.status < 500, isShort]).toEqual([what, true, true]);
  }
});
