/** Runs wrapped servers in tests: a project like that of `wrap`, as a stack. */
import { randomUUID } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { Log } from "../../core/index.ts";
import { freePort } from "../../testing/stack/port.ts";
import { startStack, type TestStack, type TestStackOptions } from "../../testing/stack/stack.ts";
import type { Snapshot, WrapOptions } from "../../wrap/index.ts";
import { writeSnapshot } from "../../wrap/worker/snapshot-file.ts";
import { WrappedServer } from "../../wrap/worker/wrapped-server.ts";
import { accept, tasksAt } from "../tasks/support.ts";

export const SILENT_LOG: Log = { debug() {}, info() {}, warn() {}, error() {} };

let count = 0;

/** The files of a project around a server, like those that `sync` writes and the documents show. */
const projectFiles = (options: WrapOptions) => ({
  "package.json": JSON.stringify({ name: options.name, type: "module", "durable-mcp-edge": { wrapped: "runs.ts" } }),
  "server.ts": `import { wrapServer } from "${module("wrap/index.ts")}";
export const server = wrapServer(${JSON.stringify(options)});
`,
  "runs.ts": `import { runWrapped } from "${module("wrap/worker/index.ts")}";
import { server } from "./server.ts";
export const runs = runWrapped(server, { snapshot: new URL("./snapshot.ts", import.meta.url) });
`,
  "worker.ts": `import { runWorker } from "${module("worker/index.ts")}";
import { runs } from "./runs.ts";
await runWorker({ functions: runs });
`,
  // Like the worker of `wrap`, which its edge reaches directly.
  "direct-worker.ts": `import { serveCallsOf } from "${module("cli/wrap/serve-calls.ts")}";
import { runWorker } from "${module("worker/index.ts")}";
import { implementationsOf } from "${module("wrap/worker/implementations.ts")}";
import { server as definition } from "./server.ts";
const { functions, server } = implementationsOf(definition, { snapshot: new URL("./snapshot.ts", import.meta.url) });
serveCallsOf(definition, server, process.env, { debug() {}, info() {}, warn() {}, error() {} });
await runWorker({ functions });
`,
});

const module = (path: string) => resolve(path);

/** Writes such a project, and returns its folder and the server's tools. */
export async function projectOf(options: WrapOptions): Promise<{ root: string; snapshot: Snapshot }> {
  const root = join(".build", `wrap-test-${process.pid}-${++count}`);
  await mkdir(root, { recursive: true });
  const server = new WrappedServer(options, process.env);
  const snapshot = await server.currentSnapshot(SILENT_LOG);
  await server.close();
  // Within this time a test has restarted a worker that it killed; the programs of the last worker need not stay longer.
  const files = projectFiles({ ...(options.command !== undefined && { keep: 30_000 }), ...options });
  for (const [name, text] of Object.entries(files)) await writeFile(join(root, name), text);
  await writeSnapshot(pathToFileURL(join(root, "snapshot.ts")), snapshot);
  return { root, snapshot };
}

/** Starts a stack in front of a server. `atOnce`: whether its edge reaches the worker, as that of `wrap` does. */
export async function wrappedStack(
  options: WrapOptions,
  { atOnce = false, ...more }: TestStackOptions & { atOnce?: boolean } = {},
): Promise<TestStack & { root: string }> {
  const { root, snapshot } = await projectOf(options);
  const wrapBindings = { WRAP_OPTIONS: JSON.stringify(options), WRAP_SNAPSHOT: JSON.stringify(snapshot) };
  const callsEnv = atOnce
    ? { WRAP_CALLS: `http://127.0.0.1:${await freePort()}`, WRAP_CALLS_TOKEN: randomUUID() }
    : undefined;
  const stack = await startStack({
    edge: "test/wrap/wrap-edge.ts",
    worker: join(root, callsEnv ? "direct-worker.ts" : "worker.ts"),
    ...more,
    env: { ...more.env, ...callsEnv },
    bindings: { ...more.bindings, ...wrapBindings, ...callsEnv },
  });
  return Object.assign(stack, { root });
}

/** A client of the 2026 revision, or of the 2025 ones. */
export async function connect(
  url: string,
  era: "2026" | "2025" = "2026",
  capabilities = {},
  headers: Record<string, string> = {},
): Promise<Client> {
  const mode = era === "2026" ? "auto" : "legacy";
  const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode }, capabilities });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
}

/** A tool's answer, in which a test reads members without checking their types. */
// oxlint-disable-next-line typescript/no-explicit-any -- the tests know its shape
export type Structured = Record<string, any>;

/** One object with an answer's structured content, its content, its text, and whether it is an error. */
export function structuredOf(result: {
  content?: unknown;
  structuredContent?: unknown;
  isError?: unknown;
}): Structured {
  const content = (result.content ?? []) as { text?: string }[];
  const text = content.map((part) => part.text ?? "").join("\n");
  return { ...(result.structuredContent as object | undefined), content, text, isError: result.isError === true };
}

/** Kills the worker and starts it again. */
export async function restartWorker(stack: TestStack): Promise<void> {
  await stack.workers[0]?.kill();
  await stack.workers[0]?.start();
}

/** Waits for the one question of a task, and answers it. */
export async function answerQuestion(stack: TestStack, taskId: string, content: object): Promise<void> {
  const tasks = tasksAt(stack.url);
  const { inputRequests } = await tasks.reaches(taskId, "input_required", 40_000);
  await tasks.update(taskId, { [Object.keys(inputRequests)[0] ?? ""]: accept(content) });
}

/** The lines of a file that end with `id`. */
export async function linesOf(file: string, id = ""): Promise<string[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "" && line.endsWith(id));
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
