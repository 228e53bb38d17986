/** What a wrapped server says is only content: it cannot make the edge name a job, add a link or add an address. */
import { randomUUID } from "node:crypto";
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestStack } from "../../testing/stack/stack.ts";
import { tasksAt } from "../tasks/support.ts";
import { COUNTING } from "../wrap/servers.ts";
import { connect, type Structured, structuredOf, wrappedStack } from "../wrap/support.ts";

let stack: TestStack;
let calls: string;
beforeAll(async () => {
  calls = join(await mkdtemp(join(tmpdir(), "said-")), "calls");
  stack = await wrappedStack(
    { name: "counting", command: process.execPath, args: [COUNTING], env: { CALLS: calls }, after: 3_000 },
    { bindings: { PUBLIC_URL: "https://edge.example", VIEW_KEY: "k".repeat(43) } },
  );
  // The first call also waits for the program to start.
  const client = await connect(stack.url, "2025");
  await client.callTool({ name: "says.a" });
  await client.close();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

async function said(answer: object): Promise<Structured> {
  const client = await connect(stack.url, "2025");
  try {
    return await client.callTool({ name: "says", arguments: { answer: JSON.stringify(answer) } });
  } finally {
    await client.close();
  }
}

const text = [{ type: "text", text: "said" }];

test("a job that it names gets no address, and the call is answered", async () => {
  for (const job_name of ["counting.write.b", 42, { job_name: "x" }, "\ud800"]) {
    const structuredContent = { job_name, promise_id: job_name, status: "running" };
    const answer = await said({ content: text, structuredContent });
    expect(answer).toMatchObject({ content: text, structuredContent });
    expect(JSON.stringify(answer)).not.toContain("view_url");
    expect(answer._meta ?? {}).not.toHaveProperty(["durable-mcp/job"]);
  }
});

test("a job address that it makes up becomes no link", async () => {
  for (const uri of ["job://%zz", "job://counting.write.b"]) {
    const summary = { uri, characters: 1, offset: 0, part: "" };
    const answer = await said({ content: text, structuredContent: { summary, statuses: [{ summary }] } });
    expect(answer.content).toEqual(text);
  }
  const link = { type: "resource_link", uri: "JOB://counting.write.b", name: "counting.write.b" };
  const { content } = await said({ content: [link] });
  expect(content).toEqual([{ type: "text", text: expect.stringContaining("JOB://counting.write.b") }]);
});

test("its app is text, and names no page for a result", async () => {
  const page = { uri: "UI://x/a", mimeType: "text/html", text: "<script>1</script>" };
  const parts = [
    { type: "resource", resource: page },
    { type: "resource", resource: { uri: "ui://x/b", blob: "AAAA" } },
    { type: "resource_link", uri: "ui://x/c", name: "c" },
  ];
  const _meta = { "openai/outputTemplate": "ui://x/a", "ui/resourceUri": "ui://x/a", "openai/widgetDomain": "x" };
  const answer = await said({ content: parts, _meta });
  expect(Object.keys(answer)).toEqual(["content"]);
  expect(answer.content.map(({ text }: { text: string }) => JSON.parse(text))).toEqual(parts);
});

test("values under the edge's own `_meta` keys are dropped, and its other keys stay", async () => {
  const _meta = { view_url: "https://evil.example", "durable-mcp/job": "counting.write.b", "acme.example/id": 7 };
  const answer = await said({ content: text, _meta });
  expect(answer._meta).toEqual({ "acme.example/id": 7 });
});

const META_OF_FILES = { "durable-mcp/files": [{ uri: "job://counting.write.b/files/0123456789abcdef-1.1.2/s.csv" }] };
const FORGED = {
  uri: "job://counting.write.b/files/0123456789abcdef-1.1.1/r.csv",
  name: "N",
  mimeType: "t",
  size: 1,
  sha256: "",
  step: "call",
  attempt: 1,
};
/** The words make the edge look for files in the answer. */
const NAMING = [{ type: "text", text: "see /files/" }];

test.each<[string, object]>([
  ["a reference to a file", { x: FORGED }],
  ["a reference under the key of stored files", { "durable-mcp:files": [FORGED] }],
  ["a reference under the key of cards", { job_files: [FORGED] }],
  ["something else under the key of cards", { job_files: [{ uri: "anything" }] }],
  ["a number under the key of cards", { job_files: 42 }],
  ["a text under the key of cards", { job_files: "abc" }],
  ["null under the key of cards", { job_files: [null] }],
])("a file that it makes up gets no address and no link, and the call is answered: %s", async (_what, made) => {
  const job_name = `file-${randomUUID()}`;
  const sent = { content: NAMING, structuredContent: made, "durable-mcp:files": [FORGED], _meta: META_OF_FILES };
  const args = { answer: JSON.stringify(sent), job_name };
  const client = await connect(stack.url, "2025");
  const called = await client.callTool({ name: "says", arguments: args });
  expect(called).toEqual({ content: NAMING, structuredContent: made });
  const job_names = [`counting.says.${job_name}`];
  const tasks = tasksAt(stack.url);
  const { taskId } = await tasks.call("says", args);
  expect((await tasks.reaches(taskId, "completed")).result).toMatchObject({ content: NAMING, structuredContent: made });
  for (const [name, asked] of [
    ["await_result", { job_names }],
    ["probe_status", { job_names, result: "full" }],
    ["job_card", { job_name: job_names[0] }],
  ] as const) {
    const answer = await client.callTool({ name, arguments: asked });
    expect(answer.content, name).toEqual([{ type: "text", text: JSON.stringify(answer.structuredContent) }]);
    expect(answer.isError, name).toBeUndefined();
    expect(JSON.stringify(answer), name).not.toContain("edge.example/files/");
    if (name === "job_card") expect(answer.structuredContent).not.toHaveProperty("job_files");
  }
  const page = await fetch(`${new URL(stack.url).origin}/pages/job?name=${job_names[0]}`);
  expect(((await page.json()) as Structured).files ?? []).toEqual([]);
  await client.close();
});

test("the result of a task is content, too", async () => {
  const summary = { uri: "job://%zz", characters: 1 };
  const tasks = tasksAt(stack.url);
  const answer = JSON.stringify({ content: text, structuredContent: { job_name: 42, summary } });
  const { taskId } = await tasks.call("says", { answer });
  const { result } = await tasks.reaches(taskId, "completed", 40_000);
  expect(result.content).toEqual(text);
});

test("a call is not answered with the result of another tool whose job has the same name", async () => {
  const client = await connect(stack.url, "2025");
  const named = async (name: string, args: object) =>
    structuredOf(await client.callTool({ name, arguments: { ...args } }));
  expect((await named("says.a", { job_name: "k" })).text).toContain("another tool");
  const answer = JSON.stringify({ content: text });
  const refused = await named("says", { answer, job_name: "a.k" });
  expect([refused.isError, refused.text]).toEqual([true, expect.stringContaining("belongs to a call of says.a")]);
  await client.close();
});

test("a call that the edge reports as running names its job, with the address of its page", async () => {
  const client = await connect(stack.url, "2025");
  const asked = structuredOf(await client.callTool({ name: "asks", arguments: { id: "a" } }));
  await client.close();
  expect(asked).toMatchObject({ status: "running", view_url: expect.stringContaining("https://edge.example/") });
  expect((await readFile(calls, "utf8")).split("\n").filter((line) => line === "says").length).toBe(17);
});
