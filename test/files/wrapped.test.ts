/** Large binary content of a wrapped server becomes files, through the real edge, worker and program. */
import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestStack } from "../../testing/stack/stack.ts";
import { startBrowser } from "../pages/browser.ts";
import { tasksAt } from "../tasks/support.ts";
import { connect, wrappedStack } from "../wrap/support.ts";

const program = { command: process.execPath, args: ["test/files/fixture/screens.ts"] };
const options = { name: "screens", ...program, after: 300_000 };
const PUBLIC_URL = "https://jobs.example";
let folder: string;
let stack: TestStack;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "files-"));
  const env = { FILES_URL: folder };
  stack = await wrappedStack(options, {
    env,
    bindings: { ...env, PUBLIC_URL, ALLOWED_HOSTS: "127.0.0.1,jobs.example" },
  });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

interface Part {
  type: string;
  text?: string;
}

async function call(url: string, name: string, args: Record<string, unknown>, era: "2025" | "2026" = "2025") {
  await using client = Object.assign(await connect(url, era), {
    async [Symbol.asyncDispose]() {
      await client.close();
    },
  });
  const { content, structuredContent } = await client.callTool({ name, arguments: args });
  return { content: content as Part[], structured: structuredContent };
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

async function downloaded(line: string | undefined) {
  const [address = ""] = /https:\S+\/files\/\S+/.exec(line ?? "") ?? [];
  const response = await fetch(address.replace(PUBLIC_URL, new URL(stack.url).origin));
  return { type: response.headers.get("content-type"), bytes: Buffer.from(await response.arrayBuffer()) };
}

test("a screenshot that is too large for an answer becomes a file with an address and a link", async (context) => {
  const browser = await startBrowser();
  if (!browser) return context.skip();
  await browser.close();
  const { content } = await call(stack.url, "screenshot", { job_name: "shot" });
  expect(content.map(({ type }) => type)).toEqual(["text", "text", "text", "resource_link"]);
  const [hash, kept, line, link] = content;
  expect(kept?.text).toMatch(/^image-2\.png \(image\/png, \d+ bytes\) is kept as job:\/\//);
  expect(link).toMatchObject({ name: "image-2.png", mimeType: "image/png" });
  const { type, bytes } = await downloaded(line?.text);
  expect(type).toBe("image/png");
  expect(sha256(bytes)).toBe(hash?.text);
  // A PNG begins with its name and its header, which has the width at this place.
  expect([bytes.toString("latin1", 1, 4), bytes.readUInt32BE(16)]).toEqual(["PNG", 1250]);
  expect(kept?.text).toContain(`${bytes.length} bytes`);
});

test("an answer of 20 MB arrives whole from a call, from a task, and from await_result", async () => {
  const size = 20_000_000;
  const before = (await readdir(folder, { recursive: true })).length;
  const { content } = await call(stack.url, "export", { size, job_name: "all" });
  // Small content stays in the answer.
  expect(content[1]).toEqual({ type: "image", data: "AAAA", mimeType: "image/png" });
  expect(content[2]?.text).toMatch(/^all\.tar\.gz \(application\/gzip, 20000000 bytes\)/);
  const arrived = await downloaded(content[3]?.text);
  expect(arrived.type).toBe("application/gzip");
  expect(sha256(arrived.bytes)).toBe(content[0]?.text);
  expect(content[4]).toMatchObject({ type: "resource_link", name: "all.tar.gz", size });

  const tasks = tasksAt(stack.url);
  const { taskId } = await tasks.call("export", { size, job_name: "all" });
  const task = await tasks.reaches(taskId, "completed");
  expect(task.result.content.at(-1)).toEqual(content[4]);
  const collected = await call(stack.url, "await_result", { job_names: ["screens.export.all"] });
  expect(collected.content).toContainEqual(content[4]);
  const again = collected.content.find(({ text }) => text?.startsWith("all.tar.gz"));
  expect(sha256((await downloaded(again?.text)).bytes)).toBe(content[0]?.text);
  // The folder has one new folder, one file and its description.
  expect((await readdir(folder, { recursive: true })).length - before).toBe(3);
});

test("a file is kept also if the rest of its answer is kept in parts", async () => {
  const before = (await readdir(folder, { recursive: true })).length;
  const { structured, content } = await call(stack.url, "export", {
    size: 5_000_000,
    text: 2_000_000,
    job_name: "long",
  });
  expect(structured).toMatchObject({ summary: { uri: expect.any(String) } });
  const file = { type: "resource_link", name: "all.tar.gz", mimeType: "application/gzip", size: 5_000_000 };
  expect(content).toContainEqual(expect.objectContaining(file));
  const probed = await call(stack.url, "probe_status", { job_names: ["screens.export.long"] });
  expect(probed.content).toContainEqual(expect.objectContaining(file));
  expect((await readdir(folder, { recursive: true })).length - before).toBe(3);
});

test("without a store for files, such an answer fails and says why, and a smaller one can be read in parts", async () => {
  await using bare = await wrappedStack(options, { env: { FILES_URL: "" } });
  const large = call(bare.url, "export", { size: 20_000_000 });
  await expect(large).rejects.toThrow(/has done the call, and its answer was dropped: .* FILES_URL/);
  const { structured } = await call(bare.url, "export", { size: 4_000_000 });
  expect(structured).toMatchObject({ summary: { uri: expect.any(String) } });
});
