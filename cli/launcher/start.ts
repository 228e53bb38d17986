/** `start` and `dev`: run Resonate, the worker and the edge on this machine until Ctrl-C. */
import { randomBytes } from "node:crypto";
import getPort from "get-port";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { splitKey } from "../../core/resonate/ids.ts";
import { readArguments, usageOf } from "../arguments.ts";
import { stopEsbuild } from "../build/esbuild.ts";
import { prebuiltEdge } from "../build/prebuilt-edge.ts";
import { type Bundle, bundleEdge } from "../bundle/bundle.ts";
import { programPath } from "../package.ts";
import { choosePorts, HOST } from "../process/ports.ts";
import { isAnswering, isOk, READY_TIMEOUT, type Service, supervise, waitUntilUp } from "../process/supervise.ts";
import { localServices, type Project, readProject, typed, workerOf } from "../project.ts";
import { banner, clientText } from "../terminal/banner.ts";
import { Console, type EndedJob } from "../terminal/console.ts";
import type { Detail } from "../terminal/report.ts";
import { DATA, stackRecordIn, takeDirectory, writeRecord } from "./data-directory.ts";
import { develop, type Stoppable } from "./dev.ts";
import { describeStack, healthHost, type Stack } from "./stack.ts";
import { type Options, optionsOf, parseOptions, swallowedByNpm } from "./start-options.ts";
import { taskKey, viewKey } from "./task-key.ts";

/** How long the server at `RESONATE_URL` may take to answer at the start, in milliseconds. */
const OTHERS_TIMEOUT = 5_000;
/** Signals within this time, in milliseconds, count as one Ctrl-C: the terminal sends it, and npm sends it again. */
const SAME_SIGNAL = 1_000;

/** Makes V8 collect the garbage of calls early, which would otherwise take more memory than everything else. */
const SMALL = ["--max-semi-space-size=1", "--heap-growing-percent=20"];

type Command = "start" | "dev" | "wrap";

const WHAT = {
  start: "Runs Resonate, the worker and the edge on this machine until Ctrl-C.",
  dev: `Runs Resonate, the worker and the edge on this machine until Ctrl-C, and watches: an edit to a definition or to a
durable function is served within two seconds. State is kept, and jobs whose code did not change go on.`,
};

/** The parts, in the order in which they are stopped: first those that create work, last the server that stores it. */
const running: Stoppable[] = [];
let stoppingSince: number | undefined;

let out = new Console();

const say = (text: string) => out.say(text);

export const run = (args: string[], command: string): Promise<void> => start(command as Command, args);

export async function usage(command: string): Promise<string> {
  const does = `${WHAT[command as keyof typeof WHAT]}

A default port that is taken gives way to the next free one, which is kept for the same state from then on.

Environment: RESONATE_URL (use that Resonate server instead of the embedded one), and all variables of the edge and the
worker.`;
  return usageOf("[options]", does, optionsOf(await localServices(readProject())))(command);
}

/**
 * Runs the launcher. Resolves when everything is up, or when it has refused the arguments or the environment. `prepare` is
 * awaited once the data directory is locked.
 */
export async function start(
  command: Command,
  args: string[],
  project = readProject(),
  prepare?: () => Promise<void>,
): Promise<void> {
  const services = await localServices(project);
  const swallowed = swallowedByNpm(args, services, process.env);
  if (swallowed !== undefined) {
    const right = typed(project, command, swallowed);
    console.error(`npm takes options for its own unless they come after "--". Type: ${right}`);
    process.exit(2);
  }
  const options = readArguments(() => parseOptions(args, services, process.env));
  if (options.config !== undefined) return printConfiguration(project, options, options.config);
  out = new Console({ detail: detailOf(command, process.env), plain: options.plain });
  watchSignals();
  await runStack(project, command, options, prepare).catch(fail);
}

async function runStack(project: Project, command: Command, options: Options, prepare?: () => Promise<void>) {
  const { data } = options;
  const { env } = process;
  const worker = command === "wrap" ? programPath("cli/wrap/wrapped-worker") : workerOf(project);
  if (data !== undefined) takeDirectory(data);
  await prepare?.();
  const { ports, said } = await choosePorts({
    asked: options.ports,
    remembered: (data !== undefined && stackRecordIn(data, false)?.ports) || {},
    without: env.RESONATE_URL ? ["resonate"] : [],
  });
  for (const line of said) say(line);
  out.print("Starting Resonate, the worker and the edge ...");
  const on = await Promise.all(
    options.services.map(async (service) => ({ service, port: await getPort({ host: HOST }) })),
  );
  const secret = env.RESONATE_LOCAL_TOKEN || env.RESONATE_TOKEN || randomBytes(32).toString("hex");
  const bindings = { TASK_KEY: env.TASK_KEY || (await taskKey(data)) };
  const stack = describeStack({
    ports,
    data,
    worker,
    services: on,
    secret,
    flags: command === "wrap" ? SMALL : [],
    env: { ...env, ...viewKey(env, bindings) },
  });
  const { edgeUrl, resonateUrl, workerUrl } = stack;
  const url = `${edgeUrl}/mcp`;
  if (data !== undefined) {
    const record = { ports, url, resonateUrl, workerUrl, project: project.root };
    writeRecord(data, stack.resonate ? { ...record, resonateToken: secret } : record);
  }

  const [bundle] = await Promise.all([
    bundleOf(command, project.root),
    ...stack.services.map((service) => keep(service, "service")),
    stack.resonate ? keep(stack.resonate, "resonate") : checkOther(resonateUrl),
  ]);
  if (!bundle) {
    await develop({ project, stack, ports, bindings, data, say, listening, running });
  } else {
    const { WRAP_CALLS = "", WRAP_CALLS_TOKEN = "" } = env;
    const edge = stack.edge(bundle, ports.edge, { ...bindings, WRAP_CALLS, WRAP_CALLS_TOKEN });
    await Promise.all([keep(stack.worker(healthHost(env), ports.worker), "worker"), keep(edge, "edge")]);
  }
  await waitUntilUp("the edge to reach Resonate", `${edgeUrl}/ready`, AbortSignal.timeout(READY_TIMEOUT), say);
  if (stoppingSince) return;
  out.print(describe(project, command, options, stack, url));
  if (options.open) await (await import("open")).default(edgeUrl).catch(() => say(`no browser opens: ${edgeUrl}`));
  const pageOf = await pagesAt(edgeUrl);
  out.follow(hasEnded(stack.resonateUrl, stack.resonate ? secret : env.RESONATE_TOKEN, env.RESONATE_NAMESPACE), pageOf);
  for (const service of options.others) {
    const lines = (await service.check?.(env)) ?? [];
    if (!stoppingSince) for (const line of lines) say(line);
  }
}

/** The edge to serve; undefined for `dev`, which builds it at each edit. */
async function bundleOf(command: Command, root: string): Promise<Bundle | undefined> {
  if (command === "dev") return undefined;
  const bundle = await (command === "wrap" ? prebuiltEdge(root) : bundleEdge());
  await stopEsbuild(); // Nothing else is built.
  return bundle;
}

function describe(project: Project, command: Command, { data, services }: Options, stack: Stack, url: string) {
  // The option with which another command finds the addresses of this run.
  const elsewhere = data === undefined ? [`--port ${new URL(url).port}`] : [`--data ${data}`];
  const option = data === DATA ? [] : elsewhere;
  const state = data === undefined ? "in memory" : `state in ${data}`;
  const resonate = stack.resonate ? `embedded, ${state}` : "from RESONATE_URL";
  // `wrap` always takes a server to wrap, so `start` answers questions about its stack.
  const known = command === "wrap" ? "start" : command;
  return banner({
    name: project.name,
    url,
    facts: [
      ["Resonate", `${stack.resonateUrl} (${resonate})`],
      ...services.flatMap(({ banner, option }) => (banner ? [[`--${option.name}`, banner] as const] : [])),
    ],
    configCommand: (client) => typed(project, known, [`--config ${client}`, ...option].join(" ")),
    ready: command === "dev" ? "Ready. Edits are served as they are saved." : "Ready.",
  });
}

/** Starts a service and keeps it running; resolves when it answers. `label` marks its output. */
function keep(service: Service, label: string): Promise<void> {
  const supervised = supervise({ ...service, onLine: listening(label) }, say);
  running.unshift(supervised);
  supervised.ended.catch(fail);
  return supervised.ready;
}

/** Asks the Resonate server whether a job has ended: no worker reports a job that was cancelled while it slept. */
function hasEnded(url: string, token: string | undefined, namespace = ""): EndedJob {
  const client = new ResonateClient({ url, token });
  return async (job) => {
    const id = `${namespace}${job}`;
    const answer = await client.send("promise.get", { id }, { origin: id });
    if (answer.status !== 200 || answer.data.promise.state === "pending") return undefined;
    const { state } = answer.data.promise;
    if (state === "rejected_canceled") return { word: "cancelled" };
    return state === "rejected_timedout" ? { word: "timed out" } : {};
  };
}

/** Returns a function from a promise id without its namespace to the address of the job's page; undefined without pages. */
async function pagesAt(edgeUrl: string): Promise<((job: string) => string) | undefined> {
  return (await isOk(`${edgeUrl}/jobs`))
    ? (job) => `${edgeUrl}/jobs/${encodeURIComponent(splitKey(job).name)}`
    : undefined;
}

/** The handler for the output lines of a process; `label` marks those that are shown. */
function listening(label: string) {
  return (line: string, stream: "stdout" | "stderr") => out.hear(label, line, stream);
}

function detailOf(command: Command, { LOG_LEVEL = "" }: NodeJS.ProcessEnv): Detail {
  if (/^(debug|trace)$/.test(LOG_LEVEL)) return "all";
  return command === "dev" ? "author" : "news";
}

/** Waits until the server at `RESONATE_URL`, which this launcher does not run, is ready. */
async function checkOther(url: string): Promise<void> {
  if (await isAnswering(`${url}/ready`, AbortSignal.timeout(OTHERS_TIMEOUT))) return;
  const refused = await fetch(`${url}/ready`, { signal: AbortSignal.timeout(OTHERS_TIMEOUT) }).then(
    () => undefined,
    (error: Error) => (error.cause as NodeJS.ErrnoException | undefined)?.code,
  );
  const patience = AbortSignal.timeout(READY_TIMEOUT);
  if (refused === undefined && (await waitUntilUp("RESONATE_URL", `${url}/ready`, patience, say))) return;
  throw new Error(`${url} (RESONATE_URL) is not ready: ${refused ?? "its /ready does not succeed"}.`);
}

async function stop(exitCode: number): Promise<void> {
  if (stoppingSince) return;
  stoppingSince = Date.now();
  out.close();
  for (const each of running) await each.stop();
  process.exit(exitCode);
}

function fail(error: unknown): void {
  if (stoppingSince) return;
  out.close();
  console.error(error instanceof Error ? error.message : error);
  void stop(1);
}

function printConfiguration(project: Project, { ports, data }: Options, client: string): void {
  const known = data === undefined ? undefined : stackRecordIn(data);
  // The stack may run another project: `wrap` makes one for each server.
  const { name } = known?.project === undefined ? project : readProject(known.project);
  const port = ports.edge ?? known?.ports.edge ?? 8787;
  console.log(clientText(name, `http://${HOST}:${port}/mcp`, client));
}

function interrupted(): void {
  if (stoppingSince === undefined) {
    say("Stopping ...");
    void stop(0);
  } else if (Date.now() - stoppingSince > SAME_SIGNAL) {
    process.exit(1); // The remaining processes end with their parent.
  }
}

function watchSignals(): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, interrupted);
  if (process.env.npm_lifecycle_event === undefined) return;
  // npm runs this process in a shell and signals only the shell, which may end without passing the signal on.
  const shell = process.ppid;
  const orphaned = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(orphaned);
    interrupted();
  }, 250).unref();
}
