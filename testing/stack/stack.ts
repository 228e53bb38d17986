/** A project's whole server in a test: edge, workers and Resonate server, as processes that the test kills and starts. */
import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { put } from "../../cli/build/put.ts";
import { bundleEdge } from "../../cli/bundle/bundle.ts";
import { readConfiguration } from "../../cli/bundle/configuration.ts";
import { filesIn, objectsIn } from "../../cli/launcher/data-directory.ts";
import { spawnEdge } from "../../cli/launcher/local-edge.ts";
import { EDGE_ENVIRONMENT } from "../../cli/launcher/stack.ts";
import { programPath } from "../../cli/package.ts";
import { Cleanups } from "../../cli/process/cleanups.ts";
import { configurationOf, edgeOf, readProject, workerOf } from "../../cli/project.ts";
import { callbackOf } from "../../core/engine/guard/seeded.ts";
import { escaped } from "../../core/engine/replay/commands/commands.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { callbackUrls } from "../../features/callbacks/callback-urls.ts";
import { WORKER_ENVIRONMENT } from "../../worker/process/worker-config.ts";
import { answers, type Program, run, until, watch } from "../simulation/program.ts";
import { CLOCK_PATH } from "../time/movable-edge.ts";
import { startTime, type Time } from "../time/stack-time.ts";
import { freePort } from "./port.ts";
import { comesToRest, findJob, nextDue } from "./rest.ts";
import { disposePart, part, type StackPart } from "./stack-part.ts";
import { startWorker, type WorkerProcess } from "./worker-process.ts";

/**
 * Options of {@link startStack}.
 *
 * @example
 * const options: TestStackOptions = { workers: 2, env: { LOG_LEVEL: "debug" }, bindings: { MAX_JOBS: "10" } };
 */
export interface TestStackOptions {
  /** The project's folder. Default: the folder that the test runs in. */
  root?: string;
  /** The edge's entry, as a path from `root`. Default: `edge.ts`, or else `main` of the wrangler configuration. */
  edge?: string;
  /** The worker's program, as a path from `root`. Default: the one that `durable-mcp-edge worker` finds. */
  worker?: string;
  /** How many workers are started at first. Default: 1. */
  workers?: number;
  /** The ports of edge and Resonate server. Default: free ones. */
  ports?: { edge?: number; resonate?: number };
  /**
   * Variables for the workers, which override the environment of the test. Of that, the variables that configure edge and worker
   * are not used. `LEASE_SECONDS` defaults to 3: the jobs of a killed worker wait that long. `FILES_URL` defaults, for the edge
   * too, to a folder of the stack; an empty one stands for no files.
   */
  env?: Record<string, string>;
  /** Bindings of the edge, which override those of the wrangler configuration. `AUTH_MODE` defaults to `none`. */
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
  /** Milliseconds since the epoch, in all processes of the stack. */
  readonly now: number;
  /**
   * Advances the time of all processes by `ms` milliseconds, from one due promise to the next. Each time it waits until every
   * job sleeps, waits or has ended, but no longer than five real seconds. A process that is stopped or blocked follows when it
   * goes on. Calls at the same time take place one after another. The edge's timeouts of tool calls, its schedules and its web
   * hooks use the machine's time.
   *
   * @throws {TypeError} if `ms` is negative or not a finite number
   */
  advance(ms: number): Promise<void>;
}

/**
 * A tool answered a {@link TestStack.call} with an error. The message is the text of the answer, `content` its structured content.
 *
 * @example
 * const isRefused = async (stack: TestStack) => {
 *   const error = await stack.call("wait_for_site", { url: "nowhere" }).catch((error) => error);
 *   return error instanceof ToolCallFailed;
 * };
 */
export class ToolCallFailed extends Error {
  override name = "ToolCallFailed";
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
  /** The MCP endpoint, for the test's own clients. */
  readonly url: string;
  /**
   * Calls a tool, as a client without tasks does, and resolves with the structured content of its answer. Waits up to 90 seconds.
   *
   * @throws {ToolCallFailed} if the tool answers with an error
   */
  // biome-ignore lint/suspicious/noExplicitAny: a test knows the shape of the answer
  call<T = any>(tool: string, args?: object): Promise<T>;
  /**
   * Resolves with the name of a job whose name begins with `name`, as soon as there is one; rejects after 45 seconds. Wait for
   * the job of a call before you move the time.
   */
  started(name: string): Promise<string>;
  /** A job, for the callbacks of its function: `stack.job(name).callback("paid").send({ amount: 3 })`. */
  job(name: string): TestJob;
  readonly edge: StackPart;
  readonly workers: readonly StackPart<WorkerProcess>[];
  addWorker(): Promise<StackPart<WorkerProcess>>;
  /** The Resonate server. It keeps its state on disk until the stack is disposed of. */
  readonly resonate: StackPart;
  readonly clock: TestTime;
}

/**
 * A job of a {@link TestStack}.
 *
 * @example
 * const pay = (stack: TestStack, name: string) => stack.job(name).callback("paid").send({ amount: 3 });
 */
export interface TestJob {
  /** `name` is the name of the callback, after those of its branches: `race/late/paid`. */
  callback(name: string): {
    /** The address that `ctx.callback` makes. */
    url(): Promise<string>;
    /** Sends it a value as JSON, through the edge. @throws {Error} with the edge's answer if the edge refuses it */
    send(value: unknown): Promise<void>;
  };
}

/** How long a call may take, in milliseconds. */
const CALL = 90_000;
/** How long `advance` waits for a running job, in real milliseconds. */
const PATIENCE = 5_000;
/** How long a job may run before the time moves a little, in case the job waits for that; and how far it moves; in milliseconds. */
const GLANCE = 100;
const NUDGE = 500;

/** The processes of a stack use no variable of a real deployment that the shell may hold: its addresses, keys and files. */
const UNSET = Object.fromEntries([...WORKER_ENVIRONMENT, ...EDGE_ENVIRONMENT].map((name) => [name, ""]));

/**
 * Starts a project's whole server on free ports of this machine: the edge in workerd, the workers and an embedded Resonate
 * server, as separate processes. They end with the test, or when the stack is disposed of.
 *
 * @throws {Error} with the output of a process that does not start
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
  const { workers: count = 1, ports = {}, env = {}, bindings = {} } = options;
  const root = resolve(options.root ?? ".");
  const script = options.worker === undefined ? workerOf(readProject(root)) : resolve(root, options.worker);
  await using started = new Cleanups();
  const edgePort = ports.edge || (await freePort());
  const origin = `http://127.0.0.1:${edgePort}`;
  // Workers move first: to a worker whose time is behind the server's, due promises would not look due.
  const time = started.use(await startTime(["worker", "resonate"], (ahead) => setEdge(origin, ahead)));

  const state = await mkdtemp(join(tmpdir(), "resonate-"));
  started.defer(() => rm(state, { recursive: true, force: true }));
  const resonateUrl = `http://127.0.0.1:${ports.resonate || (await freePort())}`;
  const resonate = part(await launchResonate(resonateUrl, state, time), () => launchResonate(resonateUrl, state, time));
  disposePart(started, resonate);
  const VIEW_KEY = bindings.VIEW_KEY ?? randomBytes(32).toString("hex");
  const called = { PUBLIC_URL: bindings.PUBLIC_URL ?? origin, VIEW_KEY };
  const FILES_URL = env.FILES_URL ?? bindings.FILES_URL ?? filesIn(state);
  const address = { RESONATE_URL: resonateUrl, RESONATE_TOKEN: "", RESONATE_GROUP: "test", RESONATE_NAMESPACE: "" };

  const workers: StackPart<WorkerProcess>[] = [];
  const addWorker = async () => {
    const { imports, env: follows } = time.movable("worker");
    const own = { HEALTH_PORT: "0", LEASE_SECONDS: "3", FILES_URL };
    const all = { ...UNSET, ...own, ...called, ...env, ...address, ...follows };
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
    VIEW_KEY,
    FILES_URL,
    // Calls of a test wait for their jobs.
    WAIT_SECONDS: "45",
  };
  const launchEdge = async () => {
    const bundle = await bundleEdge(await movableEntry(options.edge, root), root);
    const { process, ports } = await spawnEdge(bundle, {
      ...{ port: edgePort, data: objectsIn(state) },
      bindings: { ...local, ...bindings, ...address },
    });
    const edge = watch(process);
    await ports;
    await setEdge(origin, time.ahead);
    return edge;
  };
  await Promise.all(Array.from({ length: count }, addWorker));
  const edge = part(await launchEdge(), launchEdge);
  disposePart(started, edge);

  const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  started.defer(() => client.close());
  let connected: Promise<void> | undefined;
  const connect = () => client.connect(new StreamableHTTPClientTransport(new URL(`${origin}/mcp`)));
  const server = new ResonateClient({ url: resonateUrl });
  let advances = Promise.resolve();
  const all = started.move();
  const answered = async (name: string, args: object) => {
    connected ??= connect().catch((error) => {
      connected = undefined;
      throw error;
    });
    await connected;
    const over = new AbortController();
    const edgeEnded = edge.process.exited.then(() => {
      throw new Error(`the edge ended during the call of ${name}`);
    });
    try {
      const options = { timeout: CALL, signal: over.signal };
      return await Promise.race([client.callTool({ name, arguments: { ...args } }, options), edgeEnded]);
    } finally {
      over.abort();
    }
  };
  return {
    url: `${origin}/mcp`,
    call<T>(name: string, args: object = {}) {
      const call = answer<T>(answered(name, args));
      // A failed test no longer awaits its calls, and their rejections must not count as a second error.
      call.catch(() => {});
      return call;
    },
    job: (name) => ({
      callback: (callback) => {
        const url = () => callbackUrl(server, called, name, callback);
        return { url, send: async (value) => post(await url(), value) };
      },
    }),
    started: (name) => until(`a job ${name}`, () => findJob(server, name), 45_000),
    edge,
    workers,
    addWorker,
    resonate,
    clock: {
      get now() {
        return Date.now() + time.ahead;
      },
      advance: async (ms) => {
        if (!Number.isFinite(ms) || ms < 0) throw new TypeError(`The time cannot advance by ${ms} ms.`);
        const advanced = advances.then(() => advance(time, server, ms));
        advances = advanced.catch(() => {});
        return advanced;
      },
    },
    [Symbol.asyncDispose]: () => all[Symbol.asyncDispose](),
  };
}

/** The address of a job's callback. The job need not have called `ctx.callback` yet. */
async function callbackUrl(
  server: ResonateClient,
  called: Parameters<typeof callbackUrls>[0],
  job: string,
  name: string,
): Promise<string> {
  const id = (await findJob(server, job)) ?? job;
  const promise = await server.call({ kind: "promise.get", data: { id } });
  const urlOf = callbackUrls(called);
  if (!promise || !urlOf) throw new Error(`there is no job ${job}`);
  return urlOf(callbackOf(id, escaped(name)), promise.timeoutAt);
}

async function post(url: string, value: unknown): Promise<void> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(value) });
  if (!response.ok) throw new Error(`the edge answered ${response.status}: ${await response.text()}`);
}

/** The content of a tool's answer. @throws {ToolCallFailed} */
async function answer<T>(called: ReturnType<Client["callTool"]>): Promise<T> {
  const result = await called;
  const content = { ...(result.structuredContent as Record<string, unknown> | undefined) };
  if (!result.isError) return content as T;
  const texts = result.content.map((part) => (part.type === "text" ? part.text : ""));
  throw new ToolCallFailed(texts.join("\n"), content);
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
      // A job in a short pause holds its lease, and keeps it if the time moves by less than the lease's duration.
      await time.move(Math.min(left, NUDGE));
    }
  }
}

async function launchResonate(url: string, state: string, time: Time): Promise<Program> {
  const { imports, env } = time.movable("resonate");
  const args = ["--port", new URL(url).port, "--data", state];
  const server = run(programPath("server/node/process"), {
    args,
    env: { ...UNSET, ...env, RESONATE_LOCAL_TOKEN: "" },
    imports,
  });
  await answers(`${url}/ready`, server);
  return server;
}

async function setEdge(origin: string, ahead: number): Promise<void> {
  await fetch(origin + CLOCK_PATH, { method: "POST", body: `${ahead}` }).catch((error) => {
    // A killed edge gets the time when it starts again.
    if (!(error instanceof TypeError)) throw error;
  });
}

/** Writes an entry for the edge with a time that the test moves; returns its path from the project's folder. */
async function movableEntry(given: string | undefined, root: string): Promise<string> {
  const entry = resolve(root, given ?? (existsSync(join(root, "edge.ts")) ? "edge.ts" : await sourceOf(root)));
  const text = `import { movable } from ${JSON.stringify(programPath("testing/time/movable-edge"))};
import edge from ${JSON.stringify(entry)};
export * from ${JSON.stringify(entry)};
export default movable(edge);
`;
  const name = `.build/test-edge-${createHash("sha256").update(text).digest("hex").slice(0, 8)}.ts`;
  await put(root, name, text);
  return name;
}

async function sourceOf(root: string): Promise<string> {
  const project = readProject(root);
  return edgeOf(project, await readConfiguration(configurationOf(project)));
}
