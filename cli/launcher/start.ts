/** `start` and `dev`: run Resonate, the worker and the edge on this machine until Ctrl-C. */
import { randomBytes } from "node:crypto";
import getPort from "get-port";
import { ResonateClient, splitKey } from "../../core/resonate/index.ts";
import { readArguments, usageOf } from "../arguments.ts";
import { prebuiltEdge } from "../build/prebuilt-edge.ts";
import { type Bundle, bundleEdge } from "../bundle/bundle.ts";
import { requireCallers } from "../bundle/configuration.ts";
import { stopEsbuild } from "../bundle/esbuild.ts";
import { programPath } from "../package.ts";
import { choosePorts, HOST } from "../process/ports.ts";
import { isAnswering, isOk, READY_TIMEOUT_MS, type Service, supervise, waitUntilUp } from "../process/supervise.ts";
import { commandLine, localServices, type Project, readProject, workerOf } from "../project.ts";
import { banner, clientText } from "../terminal/banner.ts";
import { Console, type EndedJob } from "../terminal/console.ts";
import { print, printError } from "../terminal/print.ts";
import type { Detail } from "../terminal/report.ts";
import { DATA, stackRecordIn, takeDirectory, writeRecord } from "./data-directory.ts";
import { develop, type Stoppable } from "./dev.ts";
import { describeStack, healthHost, type Stack } from "./stack.ts";
import { type Options, optionsOf, parseOptions, swallowedByNpm } from "./start-options.ts";
import { taskKey, viewKey } from "./task-key.ts";

/** How long the server at `RESONATE_URL` may take to answer at the start. */
const OTHER_SERVER_TIMEOUT_MS = 5_000;
/** Signals within this time count as one Ctrl-C: the terminal sends it, and npm sends it again. */
const SAME_SIGNAL_MS = 1_000;

/** Makes V8 collect the garbage of calls early, which would otherwise take more memory than everything else. */
const SMALL_HEAP_FLAGS = ["--max-semi-space-size=1", "--heap-growing-percent=20"];

type Command = "start" | "dev" | "wrap";

const DESCRIPTIONS = {
  start: "Runs Resonate, the worker and the edge on this machine until Ctrl-C.",
  dev: `Runs Resonate, the worker and the edge on this machine until Ctrl-C, and watches: an edit to a definition or to a
durable function is served within two seconds. State is kept, and jobs whose code did not change continue.`,
};

/** The parts, in the order in which they are stopped: first those that create work, last the server that stores it. */
const parts: Stoppable[] = [];
let stoppingSince: number | undefined;

let output = new Console();

const say = (text: string) => output.say(text);

export const run = (args: string[], command: string): Promise<void> => start(command as Command, args);

export async function usage(command: string): Promise<string> {
  const description = `${DESCRIPTIONS[command as keyof typeof DESCRIPTIONS]}

A default port that is taken gives way to the next free one, which is kept for the same state from then on.

Environment: RESONATE_URL (use that Resonate server instead of the embedded one), and all variables of the edge and the
worker.`;
  return usageOf("[options]", description, optionsOf(await localServices(readProject())))(command);
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
  const npmOptions = swallowedByNpm(args, services, process.env);
  if (npmOptions !== undefined) {
    const correction = commandLine(project, command, npmOptions);
    printError(`npm takes options for its own unless they come after "--". Type: ${correction}`);
    process.exit(2);
  }
  const options = readArguments(() => parseOptions(args, services, process.env));
  if (options.config !== undefined) return printConfiguration(project, options, options.config);
  output = new Console({ detail: detailOf(command, process.env), plain: options.plain });
  watchSignals();
  await runStack(project, command, options, prepare).catch(fail);
}

async function runStack(project: Project, command: Command, options: Options, prepare?: () => Promise<void>) {
  const { data } = options;
  const { env } = process;
  const worker = command === "wrap" ? programPath("cli/wrap/wrapped-worker") : workerOf(project);
  if (data !== undefined) takeDirectory(data);
  await prepare?.();
  const { ports, messages } = await choosePorts({
    optionPorts: options.ports,
    lastPorts: (data !== undefined && stackRecordIn(data, false)?.ports) || {},
    without: env.RESONATE_URL ? ["resonate"] : [],
  });
  for (const line of messages) say(line);
  output.print("Starting Resonate, the worker and the edge ...");
  const services = await Promise.all(
    options.services.map(async (service) => ({ service, port: await getPort({ host: HOST }) })),
  );
  const secret = env.RESONATE_LOCAL_TOKEN || env.RESONATE_TOKEN || randomBytes(32).toString("hex");
  const bindings = { TASK_KEY: env.TASK_KEY || (await taskKey(data)) };
  const stack = describeStack({
    ports,
    data,
    worker,
    services,
    secret,
    flags: command === "wrap" ? SMALL_HEAP_FLAGS : [],
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
    await develop({ project, stack, ports, bindings, data, say, lineHandler, parts });
  } else {
    const { WRAP_CALLS = "", WRAP_CALLS_TOKEN = "" } = env;
    const edge = stack.edge(bundle, ports.edge, { ...bindings, WRAP_CALLS, WRAP_CALLS_TOKEN });
    await Promise.all([keep(stack.worker(healthHost(env), ports.worker), "worker"), keep(edge, "edge")]);
  }
  await waitUntilUp("the edge to reach Resonate", `${edgeUrl}/ready`, AbortSignal.timeout(READY_TIMEOUT_MS), say);
  if (stoppingSince) return;
  output.print(describe(project, command, options, stack, url));
  if (options.open) await (await import("open")).default(edgeUrl).catch(() => say(`no browser opens: ${edgeUrl}`));
  const pageOf = await pagesAt(edgeUrl);
  output.follow(
    hasEnded(stack.resonateUrl, stack.resonate ? secret : env.RESONATE_TOKEN, env.RESONATE_NAMESPACE),
    pageOf,
  );
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
  requireCallers(Object.keys(bundle.objects));
  return bundle;
}

function describe(project: Project, command: Command, { data, services }: Options, stack: Stack, url: string) {
  // The option with which another command finds the addresses of this run.
  const elsewhere = data === undefined ? [`--port ${new URL(url).port}`] : [`--data ${data}`];
  const option = data === DATA ? [] : elsewhere;
  const state = data === undefined ? "in memory" : `state in ${data}`;
  const resonate = stack.resonate ? `embedded, ${state}` : "from RESONATE_URL";
  // `wrap` always needs a server to wrap, so `start` answers questions about its stack.
  const configCommand = command === "wrap" ? "start" : command;
  return banner({
    name: project.name,
    url,
    facts: [
      ["Resonate", `${stack.resonateUrl} (${resonate})`],
      ...services.flatMap(({ banner, option }) => (banner ? [[`--${option.name}`, banner] as const] : [])),
    ],
    configCommand: (client) => commandLine(project, configCommand, [`--config ${client}`, ...option].join(" ")),
    ready: command === "dev" ? "Ready. Edits are served as they are saved." : "Ready.",
  });
}

/** Starts a service and keeps it running; resolves when it answers. `label` marks its output. */
function keep(service: Service, label: string): Promise<void> {
  const part = supervise({ ...service, onLine: lineHandler(label) }, say);
  parts.unshift(part);
  part.ended.catch(fail);
  return part.ready;
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
function lineHandler(label: string) {
  return (line: string, stream: "stdout" | "stderr") => output.onLine(label, line, stream);
}

function detailOf(command: Command, { LOG_LEVEL = "" }: NodeJS.ProcessEnv): Detail {
  if (/^(debug|trace)$/.test(LOG_LEVEL)) return "all";
  return command === "dev" ? "author" : "news";
}

/** Waits until the server at `RESONATE_URL`, which this launcher does not run, is ready. */
async function checkOther(url: string): Promise<void> {
  if (await isAnswering(`${url}/ready`, AbortSignal.timeout(OTHER_SERVER_TIMEOUT_MS))) return;
  const errorCode = await fetch(`${url}/ready`, { signal: AbortSignal.timeout(OTHER_SERVER_TIMEOUT_MS) }).then(
    () => undefined,
    (error: Error) => (error.cause as NodeJS.ErrnoException | undefined)?.code,
  );
  const timeout = AbortSignal.timeout(READY_TIMEOUT_MS);
  if (errorCode === undefined && (await waitUntilUp("RESONATE_URL", `${url}/ready`, timeout, say))) return;
  throw new Error(`${url} (RESONATE_URL) is not ready: ${errorCode ?? "its /ready does not succeed"}.`);
}

async function stop(exitCode: number): Promise<void> {
  if (stoppingSince) return;
  stoppingSince = Date.now();
  output.close();
  for (const each of parts) await each.stop();
  process.exit(exitCode);
}

function fail(error: unknown): void {
  if (stoppingSince) return;
  output.close();
  printError(error instanceof Error ? error.message : String(error));
  void stop(1);
}

function printConfiguration(project: Project, { ports, data }: Options, client: string): void {
  const record = data === undefined ? undefined : stackRecordIn(data);
  // The stack may run another project: `wrap` creates one for each server.
  const { name } = record?.project === undefined ? project : readProject(record.project);
  const port = ports.edge ?? record?.ports.edge ?? 8787;
  print(clientText(name, `http://${HOST}:${port}/mcp`, client));
}

function onSignal(): void {
  if (stoppingSince === undefined) {
    say("Stopping ...");
    void stop(0);
  } else if (Date.now() - stoppingSince > SAME_SIGNAL_MS) {
    process.exit(1); // The remaining processes end with their parent.
  }
}

function watchSignals(): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, onSignal);
  if (process.env.npm_lifecycle_event === undefined) return;
  // npm runs this process in a shell and signals only the shell, which may end without passing the signal on.
  const shell = process.ppid;
  const parentCheck = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(parentCheck);
    onSignal();
  }, 250).unref();
}
