import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEdge } from "../../cli/launcher/local-edge.ts";
import { watch } from "../../testing/stack/program.ts";
import { disposePart, part, type StackPart } from "../../testing/stack/stack-part.ts";
import { ownGroup, startWorker, type WorkerProcess } from "../../testing/stack/worker-process.ts";
import { type SampleArchive, startSampleArchive } from "../../tools/weather/sample-archive/server.ts";
import { isAccount, isRunner, openAccount } from "./account.ts";
import { type Gate, startGate } from "./gate.ts";
import { programOf } from "./programs.ts";
import { type Resonate, resonateAt, startResonate } from "./resonate.ts";

export type { StackPart } from "../../testing/stack/stack-part.ts";

/**
 * The whole product as separate processes on free ports; only the sample archive runs in this process. With
 * `RESONATE_HOST=object`, edge and Resonate are one process: see `account.ts`.
 */
export interface Stack extends AsyncDisposable {
  readonly edge: StackPart;
  /** The MCP endpoint of the second isolate, if the option `beside` is set. */
  readonly beside: string;
  /** The edge's origin, and its MCP endpoint. */
  readonly origin: string;
  readonly url: string;
  readonly workers: readonly StackPart<WorkerProcess>[];
  addWorker(): Promise<StackPart<WorkerProcess>>;
  /** Calls to the Resonate server, for the test itself. Ids consist of `namespace` and the job name. */
  readonly resonate: Resonate;
  readonly namespace: string;
  /** The worker group, unless `env` sets another. */
  readonly group: string;
  /** The Resonate server's process; undefined if the server is shared. */
  readonly server: StackPart | undefined;
  readonly archive: SampleArchive;
}

export interface StackOptions {
  /** The number of workers to start. Default: 1. */
  workers?: number;
  /** A server to share with others. The stack still has its own group and namespace. */
  resonate?: Resonate;
  /** Starts an embedded server for this stack alone, even if `RESONATE_URL` is set. `data`: the folder for its state. */
  own?: boolean | { data: string };
  /** Runs the server in its own process, even with `RESONATE_HOST=object`. */
  apart?: boolean;
  /** Added to the workers' environment. */
  env?: Record<string, string>;
  /** Added to the edge's bindings. */
  bindings?: Record<string, string>;
  /** The folder in which the edge's Durable Objects store their data. Default: a new one, removed with the stack. */
  objects?: string;
  /** Starts a second isolate, which shares the edge's Durable Objects, with these bindings added to those of the edge. */
  beside?: Record<string, string>;
  /** The port for the inspector of the edge's isolate. */
  inspectorPort?: number;
  /** An edge and a worker with other tools than the product's, as paths from the repository root. */
  programs?: { edge: string; worker: string };
}

export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const { workers: count = 1, env = {}, bindings = {}, inspectorPort, programs } = options;
  await using started = new AsyncDisposableStack();
  const archive = started.use(await startSampleArchive());
  const { account, server, resonate, group, namespace, address } = await openServer(options, started);
  // `env` is read at each start, because a test may change it in between.
  const upstream = () => ({ WEATHER_API_URL: archive.url, ...env });

  const key = {
    AUTH_MODE: "none",
    // In an account, the Resonate object makes the task key.
    ...(!account && { TASK_KEY: randomBytes(32).toString("hex") }),
    ALLOWED_HOSTS: "127.0.0.1,localhost",
    // Many tests make more requests than one person does. Tests of the limit set their own.
    RATE_LIMIT: "0",
    // In tests a call should get the result, however busy the machine is.
    WAIT_SECONDS: "45",
  };
  const inside = () =>
    account ? { RESONATE_GROUP: group, ...account.bindings, ...(isRunner && upstream()) } : address;
  const made = options.objects ?? (await mkdtemp(join(tmpdir(), "objects-")));
  if (options.objects === undefined) started.defer(() => rm(made, { recursive: true, force: true }));
  const serve = (port: number) => {
    const all = { ...inside(), ...key, ...bindings };
    return startEdge({
      port,
      data: account?.data ?? made,
      entry: programs?.edge,
      inspectorPort,
      bindings: all,
      otherIsolates: options.beside && [{ ...all, ...options.beside }],
    });
  };

  const workers: StackPart<WorkerProcess>[] = [];
  const addWorker = async () => {
    const launch = () =>
      startWorker({ ...address, ...upstream() }, { script: programs?.worker ?? programOf("worker") });
    const worker = part(await launch(), launch);
    workers.push(worker);
    return worker;
  };
  started.defer(async () => void (await Promise.all(workers.map((worker) => worker.end()))));
  const startWorkers = () => Promise.all(Array.from({ length: isRunner && account ? 0 : count }, addWorker));

  // In an account, workers reach their server only through the running edge.
  if (!account) await startWorkers();
  const { port, process, otherUrls } = await serve(account?.port ?? 0);
  const edge = part(watch(process), async () => watch((await serve(port)).process));
  disposePart(started, edge);
  if (account) await startWorkers();

  const all = started.move();
  const origin = `http://127.0.0.1:${port}`;
  return {
    edge,
    beside: `${otherUrls[0]}/mcp`,
    origin,
    url: `${origin}/mcp`,
    workers,
    addWorker,
    resonate,
    namespace,
    group,
    server,
    archive,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

export interface GatedStack extends Stack {
  /** The gate between the edge and the Resonate server. Workers reach the server directly. */
  readonly gate: Gate;
}

export async function startGatedStack(options: Omit<StackOptions, "resonate"> = {}): Promise<GatedStack> {
  await using started = new AsyncDisposableStack();
  const resonate = started.use(await startResonate());
  const gate = started.use(await startGate(resonate.url));
  const bindings = { ...options.bindings, RESONATE_URL: gate.url };
  const stack = started.use(await startStack({ ...options, resonate, bindings }));
  const all = started.move();
  return { ...stack, gate, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** Opens the Resonate server of a stack; `address` is the environment with which the parts of the stack reach it. */
async function openServer(options: StackOptions, started: AsyncDisposableStack) {
  const own = ownGroup();
  if (isAccount && !options.resonate && !options.apart) {
    const data = typeof options.own === "object" ? options.own.data : undefined;
    const account = started.use(await openAccount({ runs: options.workers !== 0, data }));
    const resonate = resonateAt(account.url, undefined, account.token);
    // The server is not shared, and a namespace would prevent tests from searching.
    const address = { ...resonate.env, RESONATE_GROUP: own.group, RESONATE_NAMESPACE: "" };
    return { account, server: undefined, resonate, group: own.group, namespace: "", address };
  }
  const { server, resonate } = await startServer(options);
  if (server) disposePart(started, server);
  return { account: undefined, server, resonate, ...own, address: { ...resonate.env, ...own.env } };
}

async function startServer({ resonate, own }: StackOptions) {
  if (resonate) return { resonate, server: undefined };
  const args = typeof own === "object" ? ["--data", own.data] : ["--memory"];
  const first = await startResonate({ own: Boolean(own), args });
  if (!first.program) return { resonate: first, server: undefined };
  const port = Number(new URL(first.url).port);
  const server = part(first.program, async () => {
    const { program } = await startResonate({ own: true, port, args });
    if (!program) throw new Error("the embedded server has no process");
    return program;
  });
  return { resonate: first, server };
}
