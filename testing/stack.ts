/** The whole of a project's server in a test: edge, worker and Resonate, as processes that the test kills and starts. */
import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { bundleEdge, readConfiguration } from "../cli/bundle/bundle.ts";
import { spawnEdge } from "../cli/launcher/local-edge.ts";
import { programPath } from "../cli/package.ts";
import { configurationOf, readProject, workerOf } from "../cli/project.ts";
import { ResonateClient } from "../core/store/client.ts";
import { CLOCK_PATH } from "./movable-edge.ts";
import { freePort } from "./port.ts";
import { answers, type Program, run, until, watch } from "./program.ts";
import { comesToRest, findJob, nextDue } from "./rest.ts";
import { disposePart, part, type StackPart } from "./stack-part.ts";
import { startTime, type Time } from "./stack-time.ts";
import { startWorker, type WorkerProcess } from "./worker-process.ts";

/**
 * How a {@link TestStack} is started.
 *
 * @example
 * const options: TestStackOptions = { workers: 2, env: { LOG_LEVEL: "debug" }, bindings: { MAX_JOBS: "10" } };
 */
export interface TestStackOptions {
  /** The project's folder. Default: the one that the test runs in. */
  root?: string;
  /** The edge's entry, from that folder. Default: `edge.ts`, or else `main` of the wrangler configuration. */
  edge?: string;
  /** The worker's program, from that folder. Default: as `durable-mcp-edge worker` finds it. */
  worker?: string;
  /** How many workers there are at first. Default 1. */
  workers?: number;
  /**
   * Variables for the workers, over the environment of the test. Unless it says otherwise `LEASE_SECONDS` is 3: so long a
   * killed worker keeps its jobs.
   */
  env?: Record<string, string>;
  /** Bindings of the edge, over those of the wrangler configuration. Default: `AUTH_MODE` is `none`. */
  bindings?: Record<string, string>;
}

/**
 * The time of a {@link TestStack}.
 *
 * @example
 * const nextYear = async ({ now, advance }: TestTime) => {
 *   await advance(Date.UTC(new Date(now).getUTCFullYear() + 1, 0) - now);
 * };
 */
export interface TestTime {
  /** Milliseconds since the epoch, as all processes of the stack have it. */
  readonly now: number;
  /**
   * Moves the time of all processes on by `ms` milliseconds. It moves from one thing that is due to the next, and waits
   * each time until every job sleeps, waits or has ended: so what would have happened has happened. A job that goes on
   * executing for five real seconds is not waited for. How long a call of a tool waits goes by the machine's time.
   */
  advance(ms: number): Promise<void>;
}

/**
 * What a tool answered to a {@link TestStack.call} that failed; the message is its text.
 *
 * @example
 * const isRefused = async (stack: TestStack) => {
 *   const error = await stack.call("wait_for_site", { url: "nowhere" }).catch((error) => error);
 *   return error instanceof ToolCallFailed && error.message.includes("url");
 * };
 */
export class ToolCallFailed extends Error {
  override name = "ToolCallFailed";
  /** The structured content of the answer. */
  readonly content: Readonly<Record<string, unknown>>;

  constructor(message: string, content: Readonly<Record<string, unknown>>) {
    super(message);
    this.content = content;
  }
}

/**
 * A server that runs for one test. See {@link startStack}.
 *
 * @example
 * const finished = async (stack: TestStack) => (await stack.call("list_jobs", { status: "complete" })).jobs.length;
 */
export interface TestStack extends AsyncDisposable {
  /** The MCP endpoint, for a client of the test's own. */
  readonly url: string;
  /**
   * Calls a tool, as a client that knows no tasks, and returns the structured content of its answer. It waits 90 seconds.
   *
   * @throws {ToolCallFailed} when the tool answers with an error
   */
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into it as it knows it to be
  call<T = any>(tool: string, args?: object): Promise<T>;
  /**
   * Resolves when there is a job whose name is this or begins with it, to its name; rejects after 15 seconds. A call that
   * was just made has not begun its job yet: wait for it before you move the time.
   */
  started(name: string): Promise<string>;
  readonly edge: StackPart;
  readonly workers: readonly StackPart<WorkerProcess>[];
  /** Starts another worker. */
  addWorker(): Promise<StackPart<WorkerProcess>>;
  /** The Resonate server. It keeps its state on disk, until the stack is disposed of. */
  readonly resonate: StackPart;
  readonly clock: TestTime;
}

/** How long a call may take, in milliseconds. */
const CALL = 90_000;
/** How long a job may execute before the time is moved all the same, in real milliseconds. */
const PATIENCE = 5_000;
/** How long it may execute before the time is moved a little, for what it waits for, and how far then. */
const GLANCE = 100;
const NUDGE = 500;

/**
 * Starts the whole of a project's server on free ports of this machine: the edge in workerd, the worker and an embedded
 * Resonate server, as separate processes. They end with the test, or when the stack is disposed of.
 *
 * @throws {Error} with what a process printed that does not start
 *
 * @example
 * await using stack = await startStack();
 * const set = await stack.call("set_timer", { timer_name: "tea", seconds: 86_400 });
 * await stack.workers[0]?.kill();
 * await stack.workers[0]?.start();
 * await stack.clock.advance(86_400_000);
 * const { results } = await stack.call("await_result", { job_names: [set.job_name] });
 */
export async function startStack(options: TestStackOptions = {}): Promise<TestStack> {
  const { workers: count = 1, env = {}, bindings = {} } = options;
  const root = resolve(options.root ?? ".");
  const script = options.worker === undefined ? workerOf(readProject(root)) : resolve(root, options.worker);
  await using started = new AsyncDisposableStack();
  let origin = "";
  // Workers first: one that is behind the server would find what has fallen due not due yet.
  const tellEdge = async (ahead: number) => {
    if (origin !== "") await setEdge(origin, ahead);
  };
  const time = started.use(await startTime(["worker", "resonate"], tellEdge));

  const state = await mkdtemp(join(tmpdir(), "resonate-"));
  started.defer(() => rm(state, { recursive: true, force: true }));
  const resonateUrl = `http://127.0.0.1:${await freePort()}`;
  const resonate = part(await launchResonate(resonateUrl, state, time), () => launchResonate(resonateUrl, state, time));
  disposePart(started, resonate);
  const place = { RESONATE_URL: resonateUrl, RESONATE_TOKEN: "", RESONATE_GROUP: "test", RESONATE_NAMESPACE: "" };

  const workers: StackPart<WorkerProcess>[] = [];
  const addWorker = async () => {
    const { imports, env: follows } = time.movable("worker");
    const all = { LEASE_SECONDS: "3", ...env, ...place, ...follows };
    const launch = () => startWorker(all, { script, imports, cwd: root });
    const worker = part(await launch(), launch);
    workers.push(worker);
    return worker;
  };
  started.defer(async () => void (await Promise.all(workers.map((worker) => worker.kill()))));

  const local = {
    AUTH_MODE: "none",
    ALLOWED_HOSTS: "127.0.0.1,localhost",
    TASK_KEY: randomBytes(32).toString("hex"),
    // The calls of a test wait for their jobs.
    WAIT_SECONDS: "45",
  };
  const launchEdge = async (port: number) => {
    const bundle = await bundleEdge(await movableEntry(options.edge, root), root);
    const { process, listening } = await spawnEdge(bundle, {
      ...{ port, data: join(state, "objects") },
      bindings: { ...local, ...bindings, ...place },
    });
    const edge = watch(process);
    origin = `http://127.0.0.1:${await listening}`;
    await setEdge(origin, time.ahead);
    return edge;
  };
  await Promise.all(Array.from({ length: count }, addWorker));
  const edge = part(await launchEdge(0), () => launchEdge(Number(new URL(origin).port)));
  disposePart(started, edge);

  const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  started.defer(() => client.close());
  let connected: Promise<void> | undefined;
  const connect = () => client.connect(new StreamableHTTPClientTransport(new URL(`${origin}/mcp`)));
  const server = new ResonateClient({ url: resonateUrl });
  const all = started.move();
  return {
    url: `${origin}/mcp`,
    async call<T>(name: string, args: object = {}) {
      connected ??= connect().catch((error) => {
        connected = undefined;
        throw error;
      });
      await connected;
      const result = await client.callTool({ name, arguments: { ...args } }, { timeout: CALL });
      const content = { ...(result.structuredContent as Record<string, unknown> | undefined) };
      if (!result.isError) return content as T;
      const texts = result.content.map((part) => (part.type === "text" ? part.text : ""));
      throw new ToolCallFailed(texts.join("\n"), content);
    },
    started: (name) => until(`a job ${name}`, () => findJob(server, name)),
    edge,
    workers,
    addWorker,
    resonate,
    clock: {
      get now() {
        return Date.now() + time.ahead;
      },
      advance: (ms) => advance(time, server, ms),
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** See {@link TestTime.advance}. */
async function advance(time: Time, server: ResonateClient, ms: number): Promise<void> {
  const now = () => Date.now() + time.ahead;
  const end = now() + ms;
  let patience = PATIENCE;
  for (;;) {
    const begun = performance.now();
    const isAtRest = await comesToRest(server, Math.min(GLANCE, patience));
    const left = end - now();
    if (isAtRest) patience = PATIENCE;
    else patience -= performance.now() - begun;
    if (left <= 0) {
      if (isAtRest || patience <= 0) return;
    } else if (isAtRest || patience <= 0) {
      const due = await nextDue(server, now());
      await time.move(Math.min(left, Math.max((due ?? end) - now(), 0) + 1));
    } else {
      // It may be in a pause that it waits for itself, holding its lease: moved on by less than a lease it keeps that.
      await time.move(Math.min(left, NUDGE));
    }
  }
}

async function launchResonate(url: string, state: string, time: Time): Promise<Program> {
  const { imports, env } = time.movable("resonate");
  const args = ["--port", new URL(url).port, "--data", state];
  const server = run(programPath("server/node/process"), { args, env: { ...env, RESONATE_LOCAL_TOKEN: "" }, imports });
  await answers(`${url}/ready`, server);
  return server;
}

async function setEdge(origin: string, ahead: number): Promise<void> {
  await fetch(origin + CLOCK_PATH, { method: "POST", body: `${ahead}` }).catch((error) => {
    // An edge that was killed is told when it is started again.
    if (!(error instanceof TypeError)) throw error;
  });
}

/** An entry that bundles the edge with a time that can be moved, as a path from the project's folder. */
async function movableEntry(given: string | undefined, root: string): Promise<string> {
  const entry = resolve(root, given ?? (existsSync(join(root, "edge.ts")) ? "edge.ts" : await mainOf(root)));
  const text = `import { movable } from ${JSON.stringify(programPath("testing/movable-edge"))};
import edge from ${JSON.stringify(entry)};
export * from ${JSON.stringify(entry)};
export default movable(edge);
`;
  const name = `.build/test-edge-${createHash("sha256").update(text).digest("hex").slice(0, 8)}.ts`;
  const path = join(root, name);
  if (existsSync(path)) return relative(root, path);
  await mkdir(join(root, ".build"), { recursive: true });
  await writeFile(`${path}.${process.pid}`, text);
  await rename(`${path}.${process.pid}`, path);
  return relative(root, path);
}

async function mainOf(root: string): Promise<string> {
  const { main } = await readConfiguration(configurationOf(readProject(root)));
  if (main === undefined) throw new Error("The wrangler configuration has no `main`, the edge's entry.");
  return main;
}
