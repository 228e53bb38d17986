/** The answer to a call is bounded however much the call asks for, and every client can read the rest in parts. */
import { Codec } from "@resonatehq/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callerOf } from "../../core/author/caller.ts";
import { bearerBindings } from "../auth/support.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { type RpcOptions, rpc } from "../support/rpc.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { JSON_HEADERS, send, call as toolCall } from "./support.ts";

/** The largest result in characters of JSON. The protocol's envelope comes on top. */
const BOUND = 50_000;
const ENVELOPE = 500;

const ADA = "static-token-of-ada";
const BOB = "static-token-of-bob";

let resonate: Resonate;
/** Without workers: jobs settle when a test settles them. */
let stack: Stack;
beforeAll(async () => {
  resonate = await startResonate();
  stack = await startStack({ resonate, workers: 0, bindings: bearerBindings({ ada: ADA, bob: BOB }) });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
});

const call = async (name: string, args: object, options: RpcOptions = {}) => {
  const answer = await rpc(
    stack.url,
    "tools/call",
    { name, arguments: args },
    { capabilities: {}, token: ADA, ...options },
  );
  expect(answer.error).toBeUndefined();
  expect(JSON.stringify(answer.result).length).toBeLessThan(BOUND + ENVELOPE);
  return answer.result;
};
const read = (uri: string, token = ADA) => rpc(stack.url, "resources/read", { uri }, { token });

let timers = 0;
/** Makes a job of Ada's that has ended with `value`, or failed with it if it is an error. Returns its name. */
async function jobWith(value: unknown): Promise<string> {
  const timer_name = `t${++timers}`;
  await call("set_timer", { timer_name, seconds: 3_600 });
  const id = `${stack.namespace}${(await callerOf("ada")).key}timer_${timer_name}`;
  await resonate.call("promise.settle", {
    id,
    state: value instanceof Error ? "rejected" : "resolved",
    value: new Codec().encode(value),
  });
  return `timer_${timer_name}`;
}

/** A value like a job's result, of about `characters` characters as JSON, some of which grow when quoted again. */
function large(characters: number) {
  const rows = [];
  for (let size = 60; size < characters; size += 41)
    rows.push({ day: "2014-01-01", text: 'é"\\🌧', n: rows.length % 10 });
  return { title: "rows", rows };
}

describe("a result of nearly a megabyte", () => {
  const value = large(900_000);
  const json = JSON.stringify(value);
  let name: string;
  beforeAll(async () => {
    name = await jobWith(value);
  });

  test("comes as a summary with its size, its fields, its first part and the address of the rest", async () => {
    const { structuredContent, content } = await call("probe_status", { job_names: [name] });
    const [{ summary, ...status }] = structuredContent.statuses;
    expect(status).toMatchObject({ job_name: name, status: "complete" });
    expect(status).not.toHaveProperty("result");
    expect(summary).toMatchObject({ characters: json.length, offset: 0, uri: `job://${name}`, next_offset: 2_000 });
    expect(summary.fields).toEqual({ title: 6, rows: JSON.stringify(value.rows).length });
    expect(json.startsWith(summary.part)).toBe(true);
    expect(structuredContent.note).toContain('result: "full"');
    expect(JSON.parse(content[0].text)).toEqual(structuredContent);
  });

  test("can be read whole, part by part, with the arguments of a tool alone", async () => {
    let text = "";
    let calls = 0;
    for (let offset: number | undefined = 0; offset !== undefined; calls++) {
      const args = { job_names: [name], result: "full", offset };
      const { structuredContent } = await call("probe_status", args);
      const { part, next_offset } = structuredContent.statuses[0].summary;
      text += part;
      offset = next_offset;
    }
    expect(JSON.parse(text)).toEqual(value);
    expect(calls).toBeLessThan(90);
  });

  test("can be read whole as a resource, each part of which gives the address of the next", async () => {
    let text = "";
    for (let uri: string | undefined = `job://${name}`; uri !== undefined;) {
      const { result } = await read(uri);
      expect(JSON.stringify(result).length).toBeLessThan(BOUND + ENVELOPE);
      expect(result).toMatchObject({ cacheScope: "private", contents: [{ uri, mimeType: "application/json" }] });
      const { summary, next } = JSON.parse(result.contents[0].text);
      text += summary.part;
      uri = next;
    }
    expect(JSON.parse(text)).toEqual(value);
  });

  test("yields only the requested fields", async () => {
    const fields = ["title", "rows.n", "nothing", "__proto__.x"];
    const picked = { title: "rows", rows: value.rows.map(({ n }) => ({ n })) };
    const { structuredContent } = await call("probe_status", { job_names: [name], fields });
    expect(structuredContent.statuses[0].summary.characters).toBe(JSON.stringify(picked).length);
    const title = await call("probe_status", { job_names: [name], fields: ["title"] });
    expect(title.structuredContent.statuses[0].result).toEqual({ title: "rows" });
    const { result } = await read(`job://${name}?fields=title`);
    expect(JSON.parse(result.contents[0].text).result).toEqual({ title: "rows" });
  });

  test("is left out when the call asks for none", async () => {
    const { structuredContent } = await call("probe_status", { job_names: [name], result: "none" });
    expect(Object.keys(structuredContent.statuses[0]).sort()).toEqual([
      "finished_at",
      "job_name",
      "started_at",
      "status",
    ]);
  });

  test("is linked only for clients whose revision has links", async () => {
    const link = { type: "resource_link", uri: `job://${name}`, name, mimeType: "application/json", size: json.length };
    for (const tool of ["probe_status", "await_result"]) {
      expect((await call(tool, { job_names: [name] })).content).toContainEqual(link);
      for (const [revision, links] of [
        ["2025-11-25", true],
        ["2025-06-18", true],
        ["2025-03-26", false],
        [undefined, false],
      ] as const) {
        const headers = {
          authorization: `Bearer ${ADA}`,
          ...(revision !== undefined && { "mcp-protocol-version": revision }),
        };
        const { messages, text } = await send(stack.url, { headers, body: toolCall(tool, { job_names: [name] }) });
        const { content } = messages.at(-1).result;
        expect(content.some(({ type }: { type: string }) => type === "resource_link")).toBe(links);
        expect(text).toContain(`job://${name}`);
      }
    }
  });

  test("is bounded in the result of its task, too", async () => {
    const params = { name: "timer", arguments: { timer_name: name.slice("timer_".length), seconds: 3_600 } };
    const { result: task } = await rpc(stack.url, "tools/call", params, { token: ADA });
    const { result } = await rpc(stack.url, "tasks/get", { taskId: task.taskId }, { token: ADA });
    expect(JSON.stringify(result).length).toBeLessThan(BOUND + 2 * ENVELOPE);
    expect(result.result.structuredContent.summary).toMatchObject({ characters: json.length, uri: `job://${name}` });
    expect(result.result.content.at(-1)).toMatchObject({ type: "resource_link", uri: `job://${name}` });
  });

  test("cannot be read by another caller", async () => {
    expect(await read(`job://${name}`, BOB)).toMatchObject({ error: { code: -32602 } });
    const key = (await callerOf("ada")).key;
    for (const guess of [`${key}${name}`, `../${key}${name}`, `${stack.namespace}${key}${name}`]) {
      expect(await read(`job://${encodeURIComponent(guess)}`, BOB)).toMatchObject({ error: { code: -32602 } });
    }
    const response = await fetch(stack.url, {
      method: "POST",
      headers: { ...JSON_HEADERS, "mcp-protocol-version": "2025-06-18" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "resources/read", params: { uri: `job://${name}` } }),
    });
    expect(response.status).toBe(401);
  });
});

describe("a call of a hundred names", () => {
  test("with large results shows a part of each and stays within the bound", async () => {
    const value = large(100_000);
    const names: string[] = [];
    while (names.length < 100) names.push(...(await Promise.all([1, 2, 3, 4].map(() => jobWith(value)))));
    for (const args of [{}, { result: "full" }, { result: "summary" }]) {
      const { structuredContent } = await call("probe_status", { job_names: names, ...args });
      expect(structuredContent.statuses.map(({ summary }: { summary: object }) => summary)).toEqual(
        Array(100).fill(expect.objectContaining({ characters: JSON.stringify(value).length })),
      );
      const awaited = await call("await_result", { job_names: names });
      expect(Object.keys(awaited.structuredContent.summaries)).toEqual(expect.arrayContaining(names));
    }
  });

  test("shows small results whole beside a large one", async () => {
    const names = await Promise.all(Array.from({ length: 50 }, (_, n) => jobWith({ n })));
    const whole = await call("probe_status", { job_names: names });
    expect(whole.structuredContent).not.toHaveProperty("note");
    const big = await jobWith(large(80_000));
    const { structuredContent } = await call("probe_status", { job_names: [big, ...names], result: "full" });
    const [first, ...others] = structuredContent.statuses;
    expect(first.summary.part.length).toBeGreaterThan(5_000);
    expect(others.map(({ result }: { result: object }) => result)).toEqual(names.map((_name, n) => ({ n })));
  });

  test("that are long says how many were left out, and long errors are shortened", async () => {
    const failed = await jobWith(new Error("x".repeat(400_000)));
    const { structuredContent } = await call("probe_status", { job_names: [failed] });
    expect(structuredContent.statuses[0].error.length).toBeLessThan(2_100);
    const names = Array.from({ length: 100 }, (_, n) => `timer_${n}_${"é".repeat(145)}`);
    const { structuredContent: many } = await call("probe_status", { job_names: names });
    expect(many.note).toContain(`The last ${100 - many.statuses.length} names were left out`);
    expect(many.statuses.length).toBeGreaterThan(50);
    await call("cancel_job", { job_names: names });
    await call("await_result", { job_names: names, timeout_seconds: 1 });
    const longer = names.map((name) => name + "x".repeat(50));
    expect((await call("probe_status", { job_names: longer })).content[0].text).toContain("16000 characters");
  });
});

test("resource addresses lead to jobs only", async () => {
  const templates = await rpc(stack.url, "resources/templates/list", {}, { token: ADA });
  expect(templates.result.resourceTemplates).toMatchObject([{ uriTemplate: "job://{name}{?offset,fields}" }]);
  const listed = await rpc(stack.url, "resources/list", {}, { token: ADA });
  expect(listed.result.resources).toEqual([]);
  for (const uri of [
    "job://",
    "job://timer_none",
    "job://%zz",
    "file:///etc/passwd",
    "job://timer_none?offset=-1",
    "job://a#b",
  ]) {
    expect([uri, await read(uri)]).toMatchObject([uri, { error: { code: -32602 } }]);
  }
});

test("a name with every kind of character has an address", async () => {
  const timer_name = "tea / 50 % ? # & é 🌧 “x”";
  const { structuredContent } = await call("set_timer", { timer_name, seconds: 3_600 });
  const { job_name } = structuredContent;
  const { result } = await read(`job://${encodeURIComponent(job_name)}`);
  expect(JSON.parse(result.contents[0].text)).toMatchObject({ job_name, status: "running" });
  expect(result.ttlMs).toBe(0);
});
