/** Answers of a wrapped server that are larger than a promise can hold can be collected in full, in every way. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isRunner } from "../support/account.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { byResource, byTool } from "../wrap/collect.ts";
import { connect, projectOf, type Structured } from "../wrap/support.ts";

const SERVER = { command: process.execPath, args: [join(process.cwd(), "test/wrap/large.ts")] };

let stack: Stack;
let through: Client;
let direct: Client;

/** A wrapped program needs a worker: the account's own Workers start no programs. */
const inWorker = test.skipIf(isRunner);

beforeAll(async () => {
  if (isRunner) return;
  const options = { name: "large", ...SERVER };
  const { root, snapshot } = await projectOf(options);
  const ENCRYPTION_KEYS = randomBytes(32).toString("base64");
  stack = await startStack({
    programs: { edge: "test/wrap/wrap-edge.ts", worker: join(root, "worker.ts") },
    env: { ENCRYPTION_KEYS },
    bindings: { ENCRYPTION_KEYS, WRAP_OPTIONS: JSON.stringify(options), WRAP_SNAPSHOT: JSON.stringify(snapshot) },
  });
  through = await connect(stack.url);
  direct = new Client({ name: "test", version: "1.0.0" });
  await direct.connect(new StdioClientTransport({ ...SERVER, stderr: "ignore", maxBufferSize: 20_000_000 }));
});
afterAll(async () => {
  await Promise.all([through?.close(), direct?.close(), stack?.[Symbol.asyncDispose]()]);
});

inWorker.each(["text", "report", "fails"])("%s: the whole answer of the server can be collected", async (name) => {
  const there = await direct.callTool({ name, arguments: {} });
  const here = await through.callTool({ name, arguments: {} });
  const { job_name, summary } = here.structuredContent as Structured;
  expect(here.isError).toBe(there.isError);
  expect(summary.characters).toBe(JSON.stringify(there).length);
  expect(JSON.stringify(here).length).toBeLessThan(10_000);
  const collected = await byResource(through, summary.uri);
  expect(collected === JSON.stringify(there)).toBe(true);
  if (name === "report") expect((await byTool(through, job_name)) === collected).toBe(true);
});

inWorker("an image comes whole, with its metadata", async () => {
  const there = await direct.callTool({ name: "image", arguments: {} });
  expect((await through.callTool({ name: "image", arguments: {} })).content).toEqual(there.content);
});

inWorker(
  "fields of a large answer can be picked, and an offset inside a character moves to the character's start",
  async () => {
    const { structuredContent } = await through.callTool({ name: "report", arguments: {} });
    const { job_name, summary } = structuredContent as Structured;
    const whole = JSON.parse(await byResource(through, `${summary.uri}?fields=structuredContent.by,content`));
    expect(whole).toEqual({
      structuredContent: { by: { name: "a server", notes: "n".repeat(750_000) } },
      content: [{ type: "text", text: "a report" }],
    });
    expect(await byTool(through, job_name, ["structuredContent.total", "nothing"])).toBe(
      '{"structuredContent":{"total":5000}}',
    );
    const all = await byResource(through, summary.uri);
    const inside = all.indexOf("😀", 150_000) + 1;
    const args = { job_names: [job_name], result: "full", offset: inside };
    const { structuredContent: part } = await through.callTool({ name: "probe_status", arguments: args });
    expect((part as Structured).statuses[0].summary).toMatchObject({
      offset: inside - 1,
      part: expect.stringMatching(/^😀/),
    });
  },
);

inWorker("a large resource is read whole, and the refusal of one that is too large says how to read it", async () => {
  const here = await through.readResource({ uri: "large://image" });
  expect(here.contents).toEqual((await direct.readResource({ uri: "large://image" })).contents);
  const refused: Error = await through.readResource({ uri: "large://film" }).catch((error) => error);
  const [address = ""] = /job:\/\/\S+/.exec(refused.message) ?? [];
  const whole = JSON.stringify({ contents: (await direct.readResource({ uri: "large://film" })).contents });
  const { contents } = await through.readResource({ uri: address.replace("offset=0", "offset=5000000") });
  const { offset, part, characters } = JSON.parse((contents[0] as { text: string }).text).summary;
  expect(part === whole.slice(offset, offset + part.length) && part.length > 10_000).toBe(true);
  expect([offset, characters]).toEqual([5_000_000, whole.length]);
});
