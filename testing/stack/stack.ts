/** A project's whole server in a test: edge, workers and Resonate server, as processes that the test kills and starts. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { objectsIn } from "../../cli/launcher/data-directory.ts";
import { Cleanups } from "../../cli/process/cleanups.ts";
import { readProject, workerOf } from "../../cli/project.ts";
import { ResonateClient } from "../../core/resonate/index.ts";
import { startTime, type Time } from "../time/stack-time.ts";
import { callbackUrl, sendToCallback } from "./callbacks.ts";
import { findJob } from "./job-states.ts";
import { launchEdge, launchResonate, setEdgeTime, variablesOf } from "./launch.ts";
import { freePort } from "./port.ts";
import { until } from "./program.ts";
import { disposePart, part, type StackPart } from "./stack-part.ts";
import { type TestTime, testTime } from "./test-time.ts";
import { ToolClient } from "./tool-client.ts";
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
  // oxlint-disable-next-line typescript/no-explicit-any -- a test knows the shape of the answer
  call<T = any>(tool: string, args?: object): Promise<T>;
  /**
   * Resolves with the name of a job whose name begins with `name`, as soon as there is one; rejects after 45 seconds. Wait for
   * the job of a call before you move the time.
   */
  waitForJob(name: string): Promise<string>;
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

const JOB_TIMEOUT_MS = 45_000;

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
  const { workers: count = 1, ports = {} } = options;
  const root = resolve(options.root ?? ".");
  const script = options.worker === undefined ? workerOf(readProject(root)) : resolve(root, options.worker);
  await using cleanups = new Cleanups();
  const edgePort = ports.edge || (await freePort());
  const origin = `http://127.0.0.1:${edgePort}`;
  // Workers move first: to a worker whose time is behind the server's, due promises would not look due.
  const time = cleanups.use(await startTime(["worker", "resonate"], (ahead) => setEdgeTime(edgePort, ahead)));

  const state = await mkdtemp(join(tmpdir(), "resonate-"));
  cleanups.defer(() => rm(state, { recursive: true, force: true }));
  const resonateUrl = `http://127.0.0.1:${ports.resonate || (await freePort())}`;
  const startResonate = () => launchResonate(resonateUrl, state, time);
  const resonate = part(await startResonate(), startResonate);
  disposePart(cleanups, resonate);

  const variables = variablesOf(options, { origin, resonateUrl, state });
  const workers = workersOf(variables.worker, { script, root, time });
  cleanups.defer(async () => void (await Promise.all(workers.all.map((worker) => worker.kill()))));
  await Promise.all(Array.from({ length: count }, workers.add));

  const edgeOptions = { root, port: edgePort, data: objectsIn(state), bindings: variables.edge, time };
  const startEdge = () => launchEdge({ entry: options.edge, ...edgeOptions });
  const edge = part(await startEdge(), startEdge);
  disposePart(cleanups, edge);

  const url = `${origin}/mcp`;
  const client = cleanups.use(new ToolClient(url, edge));
  const server = new ResonateClient({ url: resonateUrl });
  const all = cleanups.move();
  return {
    url,
    call<T>(name: string, args: object = {}) {
      const call = client.call<T>(name, args);
      // A failed test does not await its calls, and their rejections must not count as a second error.
      call.catch(() => {});
      return call;
    },
    waitForJob: (name) => until(`a job ${name}`, () => findJob(server, name), JOB_TIMEOUT_MS),
    job: (name) => ({
      callback: (callback) => {
        const url = () => callbackUrl(server, variables.callbacks, name, callback);
        return { url, send: async (value) => sendToCallback(await url(), value) };
      },
    }),
    edge,
    workers: workers.all,
    addWorker: workers.add,
    resonate,
    clock: testTime(time, server),
    [Symbol.asyncDispose]: () => all[Symbol.asyncDispose](),
  };
}

/** The workers of a stack, of which there are none at first. */
function workersOf(
  variables: Record<string, string>,
  { script, root, time }: { script: string; root: string; time: Time },
) {
  const all: StackPart<WorkerProcess>[] = [];
  const add = async () => {
    const { imports, env } = time.movable("worker");
    const launch = () => startWorker({ ...variables, ...env }, { script, imports, cwd: root });
    const worker = part(await launch(), launch);
    all.push(worker);
    return worker;
  };
  return { all, add };
}
