/** The worker speaks to a server of both eras in the newest revision that supports the features of its tools. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { WrapOptions } from "../../../wrap/index.ts";
import { WrappedServer } from "../../../wrap/worker/wrapped-server.ts";
import { connect, linesOf, SILENT_LOG, wrappedStack } from "../support.ts";

const ERAS_SERVER = "test/wrap/list/eras.ts";

async function eras(options: Partial<WrapOptions> = {}, env: Record<string, string> = {}) {
  const file = join(await mkdtemp(join(tmpdir(), "eras-")), "calls");
  const program = { command: process.execPath, args: [ERAS_SERVER], env: { CALLS: file, ...env } };
  const stack = await wrappedStack({ name: "eras", ...program, ...options });
  const client = await connect(stack.url);
  return {
    lines: () => linesOf(file),
    call: async (name: string) => {
      const { content } = await client.callTool({ name, arguments: {} });
      return (content as { text: string }[]).map(({ text }) => text);
    },
    async [Symbol.asyncDispose]() {
      await client.close();
      await stack[Symbol.asyncDispose]();
    },
  };
}

test("a tool that the newest revision cannot serve is called again in the older one if that is safe; otherwise the answer says what to do", async () => {
  await using first = await eras();
  expect(await first.call("era")).toEqual(["modern"]);
  expect(await first.call("reads")).toEqual(["legacy"]);
  // The worker remembers the revision for later calls.
  expect(await first.call("writes")).toEqual(["legacy"]);
  expect(await first.lines()).toEqual(["era modern", "reads modern", "reads legacy", "writes legacy"]);

  await using second = await eras();
  // A protocol error means that nothing was done, so a repetition is safe.
  expect(await second.call("refuses")).toEqual(["legacy"]);
  expect(await second.lines()).toEqual(["refuses modern", "refuses legacy"]);

  await using third = await eras();
  const [failure, advice] = await third.call("writes");
  expect(failure).toContain("unavailable on 2026-07-28");
  expect(advice).toMatch(/not repeated.*call the tool again/);
  expect(await third.call("writes")).toEqual(["legacy"]);
  expect(await third.lines()).toEqual(["writes modern", "writes legacy"]);
});

test("a configured revision is used even if the server and its tools prefer another", async () => {
  await using older = await eras({ revision: "2025-11-25" });
  expect(await older.call("era")).toEqual(["legacy"]);
  await using newer = await eras({ revision: "2026-07-28" });
  expect(await newer.call("reads")).toEqual([expect.stringContaining("unavailable")]);
  expect(await newer.lines()).toEqual(["reads modern"]);
});

test("a server with the newest revision only is called in it again", async () => {
  await using newest = await eras({}, { NEWEST: "1" });
  expect(await newest.call("reads")).toEqual([expect.stringContaining("unavailable on 2026-07-28")]);
  expect(await newest.call("era")).toEqual(["modern"]);
  expect(await newest.lines()).toEqual(["reads modern", "reads modern", "era modern"]);
});

test("the older revision is spoken again after an outage, until the server has it no more", async () => {
  const folder = await mkdtemp(join(tmpdir(), "eras-"));
  const [down, newest] = [join(folder, "down"), join(folder, "newest")];
  const script = `test -e ${down} && exit 1; test -e ${newest} && export NEWEST=1; exec "$0" ${ERAS_SERVER}`;
  const env = { CALLS: join(folder, "calls") };
  const server = new WrappedServer(
    { name: "eras", command: "sh", args: ["-c", script, process.execPath], env },
    process.env,
  );
  const revision = () =>
    server.connection("", SILENT_LOG).then(
      (connection) => connection.revision,
      ({ message }: Error) => message,
    );
  const becomes = (what: RegExp) => expect.poll(revision, { timeout: 20_000 }).toMatch(what);
  expect(await revision()).toBe("2026-07-28");
  expect(server.fallBack(SILENT_LOG)).toBe(true);
  expect(await revision()).toBe("2025-11-25");
  await server.close();
  await writeFile(down, "");
  await becomes(/Connection closed/);
  await rm(down);
  await becomes(/^2/);
  expect(await revision()).toBe("2025-11-25");
  expect(server.fallBack(SILENT_LOG)).toBe(true);
  await server.close();
  await writeFile(newest, "");
  await becomes(/Unsupported protocol version/);
  await becomes(/^2/);
  expect(await revision()).toBe("2026-07-28");
  expect(server.fallBack(SILENT_LOG)).toBe(false);
  await server.close();
});
