import { randomBytes } from "node:crypto";
import { startEdge } from "../../infra/edge.ts";
import { type SampleArchive, startSampleArchive } from "../../infra/sample-archive/server.ts";
import { type Program, watch } from "./process.ts";
import { type Resonate, startResonate } from "./resonate.ts";
import { ownGroup, startWorker, type WorkerProcess } from "./worker.ts";

/** One process of a stack, which a test can end and start again. */
export interface Part<P extends Program = Program> {
  /** The process that runs now, or the last one that ran. */
  readonly process: P;
  /** Ends the process, by SIGKILL unless told otherwise, and waits until it has ended. */
  end(signal?: NodeJS.Signals): Program["exited"];
  /** Starts a new process at the same address and waits until it answers. */
  start(): Promise<void>;
}

/** The whole product as separate processes on free ports; the sample archive alone runs in this process. */
export interface Stack extends AsyncDisposable {
  readonly edge: Part;
  /** The edge's origin, and its MCP endpoint. */
  readonly origin: string;
  readonly url: string;
  readonly workers: readonly Part<WorkerProcess>[];
  addWorker(): Promise<Part<WorkerProcess>>;
  /** Calls on the Resonate server that a test makes itself; ids there are `namespace` and the job name. */
  readonly resonate: Resonate;
  readonly namespace: string;
  /** The workers' group, unless the options name another. */
  readonly group: string;
  /** The Resonate server's process; undefined when the stack was given a server or `RESONATE_URL` names one. */
  readonly server: Part | undefined;
  readonly archive: SampleArchive;
}

export interface StackOptions {
  /** How many workers to start. */
  workers?: number;
  /** A server to share with others; the stack's group and namespace are its own all the same. */
  resonate?: Resonate;
  /** An embedded server for this stack alone, also under `RESONATE_URL`; with the folder it keeps its state in. */
  own?: boolean | { data: string };
  /** Added to the workers' environment. */
  env?: Record<string, string>;
  /** Added to the edge's bindings. */
  bindings?: Record<string, string>;
  /** Port for the inspector of the edge's isolate. */
  inspectorPort?: number;
  /** An edge and a worker that offer more than the product's, as paths from the repository root. */
  programs?: { edge: string; worker: string };
}

export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const { workers: count = 1, env = {}, bindings = {}, inspectorPort, programs } = options;
  await using started = new AsyncDisposableStack();
  const archive = started.use(await startSampleArchive());
  const { server, resonate } = await startServer(options);
  if (server) disposePart(started, server);
  const { group, namespace, env: own } = ownGroup();
  const place = { ...resonate.env, ...own };

  const workers: Part<WorkerProcess>[] = [];
  const addWorker = async () => {
    const launch = () =>
      startWorker({ ...place, WEATHER_API_URL: archive.url, ...env }, programs && { script: programs.worker });
    const worker = part(await launch(), launch);
    workers.push(worker);
    return worker;
  };
  started.defer(async () => void (await Promise.all(workers.map((worker) => worker.end()))));
  await Promise.all(Array.from({ length: count }, addWorker));

  const key = {
    AUTH_MODE: "none",
    TASK_KEY: randomBytes(32).toString("hex"),
    ALLOWED_HOSTS: "127.0.0.1,localhost",
  };
  const serve = (port: number) =>
    startEdge({ port, entry: programs?.edge, inspectorPort, bindings: { ...place, ...key, ...bindings } });
  const { port, process } = await serve(0);
  const edge = part(watch(process), async () => watch((await serve(port)).process));
  disposePart(started, edge);

  const all = started.move();
  const origin = `http://127.0.0.1:${port}`;
  return {
    edge,
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

function part<P extends Program>(first: P, launch: () => Promise<P>): Part<P> {
  let current = first;
  return {
    get process() {
      return current;
    },
    end(signal = "SIGKILL") {
      current.signal(signal);
      return current.exited;
    },
    async start() {
      current = await launch();
    },
  };
}

function disposePart(stack: AsyncDisposableStack, part: Part): void {
  stack.defer(async () => void (await part.end()));
}
