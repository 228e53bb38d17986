import { randomUUID } from "node:crypto";
import { cp, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Bundle, bundleEdge } from "../../cli/bundle/bundle.ts";
import { serveBundle, startEdge } from "../../cli/launcher/local-edge.ts";
import { startChild } from "../../cli/process/child.ts";
import { until, watch } from "../../testing/stack/program.ts";
import { CLIENTS } from "../support/clients.ts";
import { edgeStart } from "../support/edge-start.ts";
import { descendants, gone } from "./launcher.ts";

const bindings = { AUTH_MODE: "none", RESONATE_URL: "http://127.0.0.1:9" };

test("the bundle is made once and minified, with the settings of wrangler.toml", async () => {
  const bundle = await bundleEdge();
  expect(await bundleEdge()).toEqual(bundle);
  expect(bundle).toMatchObject({ compatibilityDate: expect.any(String), vars: expect.any(Object) });
  const files = (await edgeStart(bundle)).map((name) => readFile(join(bundle.dir, name), "utf8"));
  const code = (await Promise.all(files)).join("");
  expect(code.length / code.split("\n").length).toBeGreaterThan(200);
});

describe("a bundle of another entry", () => {
  const entry = `.build/${randomUUID()}.ts`;
  beforeAll(() => writeFile(entry, "export default { fetch: () => new Response() };"));
  afterAll(() => rm(entry));

  test("is built twice at the same time in one process, as for tests that run concurrently", async () => {
    const [bundle, other] = await Promise.all([bundleEdge(entry), bundleEdge(entry)]);
    expect(bundle).toEqual(other);
  });

  test("never looks old to other processes, which would remove it, while a process may start it again", async () => {
    vi.useFakeTimers({ toFake: ["setInterval"] });
    try {
      const { dir } = await bundleEdge(entry);
      const days = (ago: number) => new Date(Date.now() - ago * 86_400_000);
      await utimes(dir, days(2), days(2));
      await bundleEdge(entry);
      expect((await stat(dir)).mtimeMs).toBeGreaterThan(days(1).getTime());
      await utimes(dir, days(2), days(2));
      await vi.advanceTimersByTimeAsync(43_200_000);
      await expect.poll(async () => (await stat(dir)).mtimeMs).toBeGreaterThan(days(1).getTime());
      await rm(dir, { recursive: true });
    } finally {
      vi.useRealTimers();
    }
  });
});

/** The modules of a bundle with the code of a library. */
async function modulesWith(library: string, { dir, modules }: Bundle): Promise<string[]> {
  const maps = await Promise.all(modules.map((name) => readFile(join(dir, `${name}.map`), "utf8").catch(() => "")));
  return modules.filter((_, i) => maps[i]?.includes(`node_modules/${library}/`));
}

test("the code that it evaluates at its start is small, in few modules, and so is what it loads later", async () => {
  const bundle = await bundleEdge();
  const sizeOf = async (names: readonly string[]) => {
    const files = await Promise.all(names.map((name) => readFile(join(bundle.dir, name))));
    return files.reduce((sum, file) => sum + gzipSync(file).length, 0);
  };
  const start = await edgeStart(bundle);
  expect(start).toHaveLength(2); // The main module has the exports, the other one all code.
  const [ofStart, ofSdk] = [
    await sizeOf(start),
    await sizeOf(await modulesWith("@modelcontextprotocol/server", bundle)),
  ];
  expect(ofStart).toBeLessThan(115_000);
  expect(ofStart + ofSdk).toBeLessThan(200_000);
  expect(await sizeOf([bundle.main, ...bundle.modules])).toBeLessThan(450_000);
});

test.each(["@modelcontextprotocol/server", "jose/dist/webapi/jwt", "luxon"])(
  "%s is no part of its start",
  async (library) => {
    const bundle = await bundleEdge();
    const late = await modulesWith(library, bundle);
    expect(late).not.toEqual([]);
    expect((await edgeStart(bundle)).filter((name) => late.includes(name))).toEqual([]);
  },
);

test("a connection with its first requests and a call are answered without loading the SDK", async () => {
  const bundle = await bundleEdge();
  const dir = await mkdtemp(join(tmpdir(), "edge-"));
  try {
    await cp(bundle.dir, dir, { recursive: true });
    for (const name of await modulesWith("@modelcontextprotocol/server", bundle))
      await writeFile(join(dir, name), 'throw new Error("the SDK was loaded");');
    await using edge = await serveBundle({ ...bundle, dir }, { port: 0, bindings });
    const url = `${edge.url}/mcp`;
    for (const { connect } of CLIENTS) {
      await using client = await connect(url);
      expect((await client.listTools()).length).toBeGreaterThan(5);
      const { isError, text } = await client.callTool("get_timer_status", { timer_name: "tea" });
      expect([isError, text]).toEqual([true, expect.stringContaining("could not be reached")]);
    }
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const ask = async (message: object) => {
      const response = await fetch(url, {
        method: "POST",
        headers,
        body: JSON.stringify({ jsonrpc: "2.0", ...message }),
      });
      return [response.status, await response.text()];
    };
    expect(await ask({ method: "notifications/initialized" })).toEqual([202, ""]);
    expect(await ask({ id: 1, method: "ping" })).toEqual([200, '{"jsonrpc":"2.0","id":1,"result":{}}']);
    const listed = ["resources/list", "resources/templates/list"].map((method) => ask({ id: 1, method }));
    expect((await Promise.all(listed)).map(([status]) => status)).toEqual([200, 200]);
    expect((await fetch(url, { headers: { accept: "text/event-stream" } })).status).toBe(405);
    // An odd request needs the SDK for its answer.
    expect((await ask({ id: 1, method: "ping", params: { foreign: 1 } }))[0]).toBe(500);
  } finally {
    await rm(dir, { recursive: true });
  }
});

test("the edge answers, and reports that Resonate cannot be reached", async () => {
  await using edge = await startEdge({ port: 0, bindings });
  expect((await fetch(`${edge.url}/health`)).status).toBe(200);
  expect((await fetch(`${edge.url}/ready`)).status).toBe(503);
});

test("its temporary folder is gone once it is disposed of", async () => {
  const folder = await mkdtemp(join(tmpdir(), "edge-"));
  vi.stubEnv("TMPDIR", folder);
  const edge = await startEdge({ port: 0, bindings: { AUTH_MODE: "none" } }).finally(() => vi.unstubAllEnvs());
  expect((await fetch(`${edge.url}/ready`)).status).toBe(200);
  await edge[Symbol.asyncDispose]();
  expect(await readdir(folder)).toEqual([]);
  await rm(folder, { recursive: true });
});

test("a taken port is named", async () => {
  await using edge = await startEdge({ port: 0, bindings });
  await expect(startEdge({ port: edge.port, bindings })).rejects.toThrow(`Port ${edge.port} is already in use.`);
});

test("a child ends with its parent, even if its watchdog was killed before", async () => {
  const program = `
    import { startChild } from "./cli/process/child.ts";
    const child = startChild(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { env: {}, grace: 0 });
    console.log(child.pid);
    setInterval(() => {}, 1000);`;
  const node = (code: string) =>
    startChild(process.execPath, ["--input-type=module", "-e", code], { env: {}, grace: 0 });
  await using parent = watch(node(program));
  const watchdog = (not?: number) =>
    until("a watchdog", async () => {
      const family = await descendants(parent.pid);
      return family.find(({ pid, command }) => pid !== not && command.includes("parent-watchdog"));
    });
  const first = await watchdog();
  process.kill(first.pid, "SIGKILL");
  await watchdog(first.pid);
  const family = await descendants(parent.pid);
  expect(family.map(({ pid }) => pid)).toContain(Number(parent.output()));
  parent.signal("SIGKILL");
  await gone(family);
});
