/** The answers of a wrapped server, well-formed or not, arrive as they were sent, and messages about them are true. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { until } from "../../../testing/stack/program.ts";
import type { TestStack } from "../../../testing/stack/stack.ts";
import { rpc, rpcHeaders, rpcMessage } from "../../support/rpc.ts";
import { tasksAt } from "../../tasks/support.ts";
import { connect, linesOf, structuredOf, wrappedStack } from "../support.ts";

let file: string;
let stack: TestStack;
beforeAll(async () => {
  file = join(await mkdtemp(join(tmpdir(), "odd-")), "calls");
  const program = { command: process.execPath, args: ["test/wrap/content/odd.ts"], env: { CALLS: file } };
  stack = await wrappedStack({ name: "odd", ...program, after: 300_000 });
});
afterAll(async () => stack?.[Symbol.asyncDispose]());

let count = 0;

/** Calls a tool as a client without tasks does. `id` identifies the call at the server. */
async function answerTo(args: object, tool = "write") {
  const id = `call-${++count}`;
  const answer = await rpc(stack.url, "tools/call", { name: tool, arguments: { id, ...args } }, { capabilities: {} });
  return { id, ...answer, words: JSON.stringify(answer.result ?? answer.error) };
}

/** The answer to a call whose result is this value. */
const answerWith = (result: unknown) => answerTo({ answer: `"result":${JSON.stringify(result)}` });

/** Results that no client can read, each with a part of the message about it. */
const MALFORMED_RESULTS: readonly [result: unknown, words: RegExp][] = [
  [null, /no content/],
  ["text", /text/],
  [[1, 2], /\[1,2\]/],
  [7, /7/],
  [{ content: null }, /content/],
  [{ content: "plain" }, /plain/],
  [{ content: { type: "text", text: "alone" } }, /alone/],
  [{ content: [null] }, /content\.0/],
  [{ content: ["plain"] }, /content\.0.*plain/],
  [{ content: [[]] }, /content\.0/],
  [{ content: [{ text: "no type" }] }, /content\.0.*no type/],
  [{ content: [{ type: 7 }] }, /content\.0/],
  [{ content: [{ type: "text" }] }, /content\.0/],
  [{ content: [{ type: "text", text: 7 }] }, /content\.0/],
  [
    {
      content: [
        { type: "text", text: "good" },
        { type: "image", data: 7 },
      ],
    },
    /content\.1.*good/,
  ],
  [{ content: [{ type: "resource" }] }, /content\.0/],
  [{ content: [{ type: "resource", resource: null }] }, /content\.0/],
  [{ content: [{ type: "resource_link", uri: 7 }] }, /content\.0/],
  [{ content: [{ type: "text", text: "a", annotations: 7 }] }, /content\.0/],
  [{ content: [], isError: "no" }, /isError/],
  [{ content: [], _meta: "none" }, /_meta/],
];

test("a result that clients cannot read becomes an error that quotes it; the call is made once, and nobody is advised to repeat it", async () => {
  for (const [result, words] of MALFORMED_RESULTS) {
    const { id, result: answer, words: all } = await answerWith(result);
    expect(answer?.content, all).toEqual([{ type: "text", text: expect.stringMatching(words) }]);
    expect(all).not.toMatch(/safe|Nothing was done/);
    if (result !== null) expect(answer).toMatchObject({ isError: true });
    expect(await linesOf(file, id)).toEqual([`write ${id}`]);
  }
  const client = await connect(stack.url, "2025");
  for (const [result] of MALFORMED_RESULTS) {
    const args = { id: `client-${++count}`, answer: `"result":${JSON.stringify(result)}` };
    expect(await client.callTool({ name: "write", arguments: args })).toMatchObject({ content: [{ type: "text" }] });
  }
  await client.close();
});

test("an answer without content becomes a text that says so, and is not an error", async () => {
  const { id, result } = await answerWith({});
  expect(result).toMatchObject({ content: [{ text: expect.stringMatching(/^odd answered .*no content/) }] });
  expect(result.isError).toBeUndefined();
  expect(await linesOf(file, id)).toHaveLength(1);
  expect((await answerWith({ structuredContent: { a: 1 } })).result).toMatchObject({
    content: [],
    structuredContent: { a: 1 },
  });
});

test("a call is never called safe to repeat, for any JSON in the answer", async () => {
  const members = fc.record(
    { content: fc.jsonValue(), structuredContent: fc.jsonValue(), isError: fc.jsonValue(), _meta: fc.jsonValue() },
    { requiredKeys: [] },
  );
  const any = fc.oneof(fc.jsonValue(), members, fc.record({ content: fc.array(fc.jsonValue()) }));
  await fc.assert(
    fc.asyncProperty(any, async (result) => {
      const { id, words } = await answerWith(result);
      expect(words).not.toMatch(/safe|Nothing was done/);
      expect(words.length).toBeLessThan(60_000);
      expect(await linesOf(file, id)).toHaveLength(1);
    }),
    { numRuns: 60 },
  );
});

test("a deeply nested answer arrives whole up to a bound, and beyond it becomes an error that says so", async () => {
  const deepAnswer = await answerTo({ deep: 300 });
  expect(deepAnswer.words).toContain('{"a":'.repeat(300));
  for (const deep of [3_000, 1_000_000]) {
    const { id, result, words } = await answerTo({ deep });
    expect(result, words).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/nested/) }] });
    expect(words).not.toMatch(/safe|Nothing was done/);
    expect(await linesOf(file, id)).toHaveLength(1);
  }
});

test("unknown kinds of content and fields pass unchanged", async () => {
  const result = {
    later: "a field of a revision to come",
    content: [
      { what: ["nobody here knows", { "": null }], type: "hologram", depth: 1.5 },
      { type: "text", text: "hello", later: true, annotations: { audience: ["user"], priority: 1 } },
      { type: "resource_link", uri: "odd://b", name: "b", icons: [{ src: "https://odd.example/b.png" }] },
    ],
    structuredContent: { nested: { list: [1, null, "ü"] } },
    _meta: { "odd/id": 7 },
  };
  const { resultType: _, ...modern } = (await answerWith(result)).result;
  const client = await connect(stack.url, "2025");
  const args = { id: `call-${++count}`, answer: `"result":${JSON.stringify(result)}` };
  const legacy = await client.request({ method: "tools/call", params: { name: "write", arguments: args } }, z.any());
  await client.close();
  for (const { _meta, ...rest } of [modern, legacy]) {
    expect(JSON.stringify(rest)).toBe(JSON.stringify({ ...result, _meta: undefined }));
    expect(_meta).toMatchObject(result._meta);
  }
});

/** JSON in which much looks like a mark of the store, and integers are too long for a number. */
const anyJson = fc
  .letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom("__INF__", "~__NEG_INF__", "error", "~error", "aggregate_error"),
      fc.bigInt({ min: 2n ** 53n, max: 2n ** 90n }).map((integer) => JSON.rawJSON(String(integer))),
      fc.jsonValue(),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom("__type", "message", "errors", "x"), tie("value")),
    ),
  }))
  .value.map((value) => JSON.stringify(value));

/** The text of the answer to a call with this JSON as arguments, in either revision. */
async function bodyOf(args: string, era: "2025" | "2026", name = "write"): Promise<string> {
  const { params, ...message } = rpcMessage("tools/call", { name }, {});
  const body = JSON.stringify({ ...message, params: era === "2026" ? params : { name } });
  const { "mcp-protocol-version": version = "", ...headers } = rpcHeaders("tools/call", { name });
  const response = await fetch(stack.url, {
    method: "POST",
    headers: { ...headers, ...(era === "2026" && { "mcp-protocol-version": version }) },
    body: body.replace(`"name":"${name}"`, `"name":"${name}","arguments":${args}`),
    signal: AbortSignal.timeout(30_000),
  });
  return response.text();
}

test("any JSON is the same in the server's arguments, its results and errors, and in what is stored of them", async () => {
  await fc.assert(
    fc.asyncProperty(anyJson, fc.constantFrom("2025", "2026"), async (json, era) => {
      const id = `any-${++count}`;
      const echo = await bodyOf(`{"id":"${id}","echo":true,"value":${json}}`, era);
      expect(echo).toContain(JSON.stringify(`"value":${json}}`).slice(1, -1));
      const result = `{"content":[],"structuredContent":{"value":${json}},"_meta":{"odd/value":${json}}}`;
      const answer = await bodyOf(JSON.stringify({ id, job_name: id, answer: `"result":${result}` }), era);
      const collected = await bodyOf(`{"job_names":["odd.write.${id}"]}`, era, "await_result");
      for (const body of [answer, collected]) {
        expect(body).toContain(`"structuredContent":{"value":${json}}`);
        expect(body).toContain(`"odd/value":${json}`);
      }
      // The same as text.
      expect(collected).toContain(JSON.stringify(`"structuredContent":{"value":${json}}`).slice(1, -1));
      const error = `"error":{"code":-32042,"message":"__INF__","data":${json}}`;
      expect(await bodyOf(JSON.stringify({ id, answer: error }), era)).toContain(`"message":"__INF__","data":${json}`);
    }),
    { numRuns: 15, endOnFailure: true, examples: [["[725653563933458432]", "2026"]] },
  );
});

test("a number beyond all numbers is refused as an argument, and in a result", async () => {
  const asked = await bodyOf(`{"id":"huge-${++count}","value":[1e400]}`, "2026");
  expect(asked).toMatch(/Nothing was done: .*value\[0\]: got a number beyond/s);
  const { words } = await answerTo({ answer: '"result":{"content":[],"structuredContent":{"a":1e400}}' });
  expect(words).toMatch(/odd answered, but with a number beyond .* at structuredContent\.a/);
});

const NEEDS_URL = {
  code: -32042,
  message: "Open this first",
  data: { elicitations: [{ mode: "url", elicitationId: "e1", url: "https://odd.example/consent", message: "Agree" }] },
};

test("a protocol error reaches a call, its repetition and a task with its code and its data", async () => {
  const answer = `"error":${JSON.stringify(NEEDS_URL)}`;
  expect((await answerTo({ answer })).error).toEqual(NEEDS_URL);
  const client = await connect(stack.url, "2025");
  const params = { name: "write", arguments: { id: "error-1", answer, job_name: "error-1" } };
  for (let i = 0; i < 2; i++) {
    await expect(client.callTool(params)).rejects.toMatchObject({
      code: NEEDS_URL.code,
      message: expect.stringContaining(NEEDS_URL.message),
      data: NEEDS_URL.data,
    });
  }
  await client.close();
  expect(await linesOf(file, "error-1")).toHaveLength(1);
  const tasks = tasksAt(stack.url);
  const { taskId } = await tasks.call("write", { id: "error-2", answer });
  expect((await tasks.reaches(taskId, "failed")).error).toEqual(NEEDS_URL);
  // In await_result, which collects several jobs, the error is one of the results.
  const { results } = await stack.call("await_result", { job_names: ["odd.write.error-1"] });
  expect(results["odd.write.error-1"]).toMatchObject({ isError: true, content: [{ text: /-32042: Open this first/ }] });
});

test.each(["5", '"no"', "{}", '{"code":"x","message":7,"data":[1]}'])(
  "a malformed error is still an error: %s",
  async (error) => {
    const { id, error: answerError, words } = await answerTo({ answer: `"error":${error}` });
    expect(answerError?.code, words).toEqual(expect.any(Number));
    expect(await linesOf(file, id)).toHaveLength(1);
  },
);

test("the `_meta` of calls and results reaches the other side, except for entries between this server and its clients", async () => {
  const _meta = {
    traceparent: "00-1-2-01",
    "odd/hint": { deep: [1] },
    idempotencyKey: "k",
    "durable-mcp/job": "forged",
  };
  const params = { name: "write", arguments: { id: "meta" }, _meta };
  for (const era of ["2025", "2026"] as const) {
    const client = await connect(stack.url, era);
    const result = await client.callTool({ ...params, _meta: { ..._meta, idempotencyKey: era } });
    await client.close();
    const { progressToken, ...receivedMeta } = JSON.parse(structuredOf(result).text)._meta;
    expect(receivedMeta).toEqual({ traceparent: "00-1-2-01", "odd/hint": { deep: [1] } });
    expect(result._meta).toMatchObject({ "odd/own": 1 });
  }
});

test("if the store fails a call that may have been sent, the error says under which job name to repeat it, and then it is sent once", async () => {
  const firstAnswer = answerTo({ after: 1_000 });
  const firstId = `call-${count}`;
  await until("the call", async () => (await linesOf(file, firstId)).length === 1);
  await stack.resonate.kill();
  const [write, read] = await Promise.all([answerTo({}), answerTo({}, "read")]);
  expect(read.words).toContain("that is safe");
  expect(write.words).not.toContain("that is safe");
  const [, job_name] = /job_name: \\"([^"\\]+)\\"/.exec(write.words) ?? [];
  expect(job_name, write.words).toBeDefined();
  // With a job name from the caller, a repeated call is the same job.
  const answer = await answerTo({ job_name: "named" });
  expect(answer.words).toContain("that is safe");
  await stack.resonate.start();
  expect((await firstAnswer).words).not.toContain("that is safe");
  for (let i = 0; i < 2; i++) {
    const args = { id: write.id, job_name };
    const params = { name: "write", arguments: args };
    expect((await rpc(stack.url, "tools/call", params, { capabilities: {} })).result.isError).toBeUndefined();
  }
  for (const id of [write.id, firstId]) expect(await linesOf(file, id)).toHaveLength(1);
});
