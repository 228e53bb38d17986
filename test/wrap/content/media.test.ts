/** Images, sounds and files in the answers of a wrapped server are kept whole up to a separate bound. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestStack } from "../../../testing/stack/stack.ts";
import { tasksAt } from "../../tasks/support.ts";
import { connect, wrappedStack } from "../support.ts";

let stack: TestStack;
beforeAll(async () => {
  const env = { CALLS: join(await mkdtemp(join(tmpdir(), "odd-")), "calls") };
  const program = { command: process.execPath, args: ["test/wrap/content/odd.ts"], env };
  stack = await wrappedStack({ name: "odd", ...program, after: 300_000 }, { env: { FILES_URL: "" } });
});
afterAll(async () => stack?.[Symbol.asyncDispose]());

const data = (size: number) => "AAAA".repeat(size / 4);
const image = (size: number) => ({ type: "image", data: data(size), mimeType: "image/png" });
const audio = (size: number) => ({ type: "audio", data: data(size), mimeType: "audio/wav" });
const file = (size: number) => ({ type: "resource", resource: { uri: "odd://file", blob: data(size) } });

async function call(name: string, args: object) {
  const client = await connect(stack.url, "2025");
  try {
    const { content, structuredContent } = await client.callTool({ name, arguments: { ...args } });
    return { content: content as { type: string; text?: string }[], structuredContent };
  } finally {
    await client.close();
  }
}

test("an image, a sound and a file arrive whole from a call, from a task, and from await_result", async () => {
  for (const size of [40_000, 1_200_000]) {
    const media = [image(size), audio(size), file(size)];
    const args = { id: "a", media: [size, size, size] };
    expect((await call("write", { ...args, job_name: `m${size}` })).content.slice(1)).toEqual(media);
    const tasks = tasksAt(stack.url);
    const { taskId } = await tasks.call("write", args);
    expect((await tasks.reaches(taskId, "completed")).result.content.slice(1)).toEqual(media);
    const name = `odd.write.m${size}`;
    const { content, structuredContent } = await call("await_result", { job_names: [name] });
    expect(content.slice(1)).toEqual(media);
    // The text about them is for a model: it holds no base64.
    expect(content[0]?.text).toContain("1 of 3 beside this text");
    expect(content[0]?.text?.length).toBeLessThan(2_000);
    expect(structuredContent).toMatchObject({
      results: { [name]: { content: [{}, { mimeType: "image/png" }, {}, {}] } },
    });
  }
});

test("a text and its copy in the structured content count once; a longer text is summarized, with its images beside the summary", async () => {
  const answer = await call("write", { text: 45_000, media: [200_000] });
  expect(answer).toEqual({
    content: [{ type: "text", text: "x".repeat(45_000) }, image(200_000)],
    structuredContent: { result: "x".repeat(45_000) },
  });
  const long = await call("write", { text: 60_000, media: [800_000] });
  expect(long.structuredContent).toMatchObject({ status: "complete", summary: { next_offset: expect.any(Number) } });
  expect(long.content.slice(1)).toEqual([expect.objectContaining({ type: "resource_link" }), image(800_000)]);
});

test("beyond the bound, the answer says how large the result is, and where to read it in parts", async () => {
  const { content, structuredContent } = await call("write", { media: [4_000_004] });
  expect(structuredContent).toMatchObject({ summary: { characters: expect.any(Number), uri: expect.any(String) } });
  expect(content.map(({ type }) => type)).toEqual(["text", "resource_link"]);
});
