/** Every argument of every tool, as long as a request may be: what is refused is refused at once, in few words. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cpuSeconds } from "../../lab/bench/setup/usage.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { call, JSON_HEADERS, send } from "./support.ts";

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

async function tools(): Promise<{ name: string; inputSchema: { properties: object } }[]> {
  const listed = await send(stack.url, { body: { jsonrpc: "2.0", id: 1, method: "tools/list" } });
  expect(listed.messages[0].result.tools.length).toBeGreaterThan(8);
  return listed.messages[0].result.tools;
}

test.each(TEXTS)("%s", async (_what, text) => {
  for (const { name, inputSchema } of await tools()) {
    for (const argument of Object.keys(inputSchema.properties)) {
      if (argument === "timeout_seconds") continue;
      const answer = await send(stack.url, { body: call(name, { ...RIGHT, timeout_seconds: 1, [argument]: text }) });
      const { result } = answer.messages.at(-1);
      expect([name, argument, result?.content[0].text.length < 5_000]).toEqual([name, argument, true]);
    }
  }
});

/** How much of what is malformed is sent, in characters: what costs more than its bytes shows long before the largest body. */
const MUCH = 400_000;

/** A list of pieces that are alike. */
const filled = (piece: unknown, length = MUCH) =>
  Array.from({ length: Math.floor(length / (JSON.stringify(piece).length + 1)) }, () => piece);

/** Values of the wrong form, in every way in which there can be much of it. */
const SHAPES: [what: string, value: (argument: string) => unknown][] = [
  ["a list of numbers", () => filled(1)],
  ["a list of empty objects", () => filled({})],
  ["a list of empty texts", () => filled("")],
  ["a list of texts and a number", () => [...filled("a"), 1]],
  ["a list of objects that name an object", () => filled({ job_name: { job_name: "x" } })],
  ["the same as text", () => JSON.stringify(filled({ job_name: { job_name: "x" } }, MUCH / 2))],
  ["an object of many names", () => Object.fromEntries(filled("abcdefghijk").map((name, n) => [`${name}${n}`, n]))],
  ["lists in lists", () => filled(JSON.parse("[".repeat(80) + "]".repeat(80)))],
  ["itself in itself", (argument) => Array.from({ length: 80 }).reduce((inner) => ({ [argument]: inner }), filled(1))],
  ["one long text in a list", () => ["x".repeat(LONG)]],
];

/** How many times as long as for a `ping` that holds the same the edge may take for a call. */
const MOST = 4;

describe("what is malformed costs no more than its bytes", () => {
  /** The processor time of the edge for a request, in milliseconds, over several of them. */
  async function cost(body: unknown, times: number): Promise<number> {
    const text = JSON.stringify(body);
    const before = cpuSeconds(stack.edge.process.pid);
    for (let n = 0; n < times; n++) {
      const signal = AbortSignal.timeout(10_000);
      const response = await fetch(stack.url, { method: "POST", headers: JSON_HEADERS, body: text, signal });
      expect([response.status < 500, (await response.text()).length < 5_000]).toEqual([true, true]);
    }
    return ((cpuSeconds(stack.edge.process.pid) - before) * 1_000) / times;
  }

  const ping = (much: unknown) => ({ jsonrpc: "2.0", id: 1, method: "ping", params: { _meta: { much } } });

  test.each(SHAPES)("%s", async (_what, value) => {
    await cost(ping(value("much")), 3);
    const ofPing = await cost(ping(value("much")), 5);
    const dear: unknown[] = [];
    for (const { name, inputSchema } of await tools()) {
      for (const argument of Object.keys(inputSchema.properties)) {
        const body = call(name, { ...RIGHT, timeout_seconds: 1, [argument]: value(argument) });
        const ratio = (await cost(body, 1)) / ofPing;
        // Time in which memory is collected is not this request's alone: a dear one is sent again.
        if (ratio > MOST && (await cost(body, 5)) / ofPing > MOST) dear.push([name, argument, ratio]);
      }
    }
    expect(dear).toEqual([]);
  });

  test.each([1, {}, { jsonrpc: "2.0", id: 1 }])("a batch of more messages than there may be, each %j", async (one) => {
    expect((await cost(filled(one), 3)) / (await cost(ping(filled(one)), 3))).toBeLessThan(MOST);
  });
});
