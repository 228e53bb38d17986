/** Every argument of every tool, as long as a request may be: what is refused is refused at once, in few words. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cpuSeconds } from "../../lab/bench/setup/usage.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { call, JSON_HEADERS, send } from "./support.ts";

/** In characters; some take several bytes. `FUZZ_TIMES=4` makes requests as long as they may be. */
const LONG = Math.min(900_000, 240_000 * Number(process.env.FUZZ_TIMES ?? 1));

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
  async function cost(body: unknown, times: number, path = "/mcp", more: Record<string, string> = {}): Promise<number> {
    const text = JSON.stringify(body);
    const headers = { ...JSON_HEADERS, ...more };
    const before = cpuSeconds(stack.edge.process.pid);
    for (let n = 0; n < times; n++) {
      const signal = AbortSignal.timeout(10_000);
      const response = await fetch(stack.origin + path, { method: "POST", headers, body: text, signal });
      const { length } = await response.text();
      // A list may be long, and is as long for every caller.
      const isShort = length < 5_000 || (body as { method?: unknown }).method === "tools/list";
      expect([response.status < 500, isShort, isShort || text.slice(0, 120)]).toEqual([true, true, true]);
    }
    return ((cpuSeconds(stack.edge.process.pid) - before) * 1_000) / times;
  }

  /**
   * By how much a request costs more than a ping, measured in turns: what else the machine does disturbs both. Until it is far
   * from too much, but five turns at most. What is too much by then has twenty, because a collection of memory costs as
   * much as several requests, and falls on one of them.
   */
  async function ratioTo(
    reference: unknown,
    ...request: [body: unknown, path?: string, more?: Record<string, string>]
  ) {
    const [body, ...rest] = request;
    let [ofBody, ofReference] = [0, 0];
    const isAbove = (ratio: number) => ofBody > ratio * ofReference;
    for (let n = 0, most = 5; n < most && (n === 0 || isAbove(MOST / 2)); n++) {
      ofBody += await cost(body, 1, ...rest);
      ofReference += await cost(reference, 1);
      if (n === 4 && isAbove(MOST)) most = 20;
    }
    return ofBody / ofReference;
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
        if (ratio > MOST && (await ratioTo(ping(value("much")), body)) > MOST) dear.push([name, argument, ratio]);
      }
    }
    expect(dear).toEqual([]);
  });

  /** Params of the other methods that take any, where `much` stands in place of each. */
  const METHODS: [method: string, params: readonly string[]][] = [
    ["tools/list", ["cursor", "_meta"]],
    ["tools/call", ["name", "arguments", "_meta", "task", "inputResponses", "requestState"]],
    ["resources/read", ["uri"]],
    ["resources/subscribe", ["uri"]],
    ["completion/complete", ["ref", "argument", "context"]],
    ["prompts/get", ["name", "arguments"]],
    ["tasks/get", ["taskId"]],
    ["tasks/update", ["taskId", "inputResponses"]],
    ["tasks/cancel", ["taskId"]],
    ["events/poll", ["name", "cursor", "params", "limit"]],
    ["events/subscribe", ["name", "delivery", "params", "cursor"]],
    ["events/unsubscribe", ["name", "delivery", "params"]],
    ["initialize", ["protocolVersion", "capabilities", "clientInfo"]],
    ["logging/setLevel", ["level"]],
  ];
  const FIT = { name: "job.ended", uri: "job://timer_none", taskId: "none", cursor: null };

  /** Those of the shapes that cost most. */
  const DEAREST = SHAPES.filter(([what]) => /as text|many names|lists in lists/.test(what));

  test.each(DEAREST)("%s in the params of every method, and at the other doors", async (_what, value) => {
    const much = value("much");
    await cost(ping(much), 3);
    const ofPing = await cost(ping(much), 5);
    const dear: unknown[] = [];
    // The names in `_meta` are looked at one by one, in a `ping` as well.
    const pingWith = { jsonrpc: "2.0", id: 1, method: "ping", params: { _meta: much } };
    const ofPingWith = typeof much === "object" ? Math.max(ofPing, await cost(pingWith, 5)) : ofPing;
    const check = async (what: unknown, body: unknown, path?: string, more?: Record<string, string>) => {
      const [reference, ofReference] =
        String(what).includes("_meta") && ofPingWith > ofPing ? [pingWith, ofPingWith] : [ping(much), ofPing];
      if ((await cost(body, 1, path, more)) <= MOST * ofReference) return;
      const again = await ratioTo(reference, body, path, more);
      if (again > MOST) dear.push([what, again]);
    };
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    for (const [method, params] of METHODS)
      for (const param of params) {
        const message = { jsonrpc: "2.0", id: 1, method };
        await check([method, param], { ...message, params: { ...FIT, [param]: much } });
        const modern = {
          ...message,
          params: { ...FIT, _meta: meta, [param]: param === "_meta" ? { ...meta, much } : much },
        };
        await check([method, param, "2026"], modern, "/mcp", {
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": method,
        });
      }
    for (const path of ["/callbacks/none", "/resonate", "/resonate/x", "/pages/session", "/view/none", "/nowhere"])
      await check(path, much, path);
    expect(dear).toEqual([]);
  });

  test.each([1, {}, { jsonrpc: "2.0", id: 1 }])("a batch of more messages than there may be, each %j", async (one) => {
    expect((await cost(filled(one), 3)) / (await cost(ping(filled(one)), 3))).toBeLessThan(MOST);
  });
});
