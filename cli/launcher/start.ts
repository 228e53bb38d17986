/** `start` and `dev`: Resonate, the worker and the edge on this machine, kept running until Ctrl-C. */
import { randomBytes } from "node:crypto";
import getPort from "get-port";
import { ResonateClient } from "../../core/store/client.ts";
import { splitKey } from "../../core/store/ids.ts";
import { bundleEdge } from "../bundle/bundle.ts";
import { choosePorts } from "../process/ports.ts";
import { answerAll, READY_TIMEOUT, type Service, supervise, waitUntilUp } from "../process/supervise.ts";
import { type Project, readProject, typed, workerOf } from "../project.ts";
import { banner, clientText } from "../terminal/banner.ts";
import { Console, type EndedJob } from "../terminal/console.ts";
import type { Detail } from "../terminal/report.ts";
import { recordOf, takeDirectory, writeRecord } from "./data-directory.ts";
import { develop } from "./dev.ts";
import { type LocalService, localServices } from "./local-services.ts";
import { describeStack, HOST, healthHost, type Stack } from "./stack.ts";
import { DATA, OPTION_OF, type Options, parseOptions, swallowedByNpm, usage } from "./start-options.ts";
import { taskKey } from "./task-key.ts";

/** How long a Resonate server that somebody else runs may be away, in milliseconds. */
const OTHERS_TIMEOUT = 5_000;
/** One Ctrl-C arrives twice, from the terminal and from npm; only a later one is a second. In milliseconds. */
const SAME_SIGNAL = 1_000;

/** Something that runs and is to be ended. */
export interface Running {
  stop(): Promise<void>;
}

export type Command = "start" | "dev";

const WHAT: Record<Command, string> = {
  start: "Runs Resonate, the worker and the edge on this machine until Ctrl-C.",
  dev: `Runs Resonate, the worker and the edge on this machine until Ctrl-C, and watches: an edit to a definition or to a
durable function is served within two seconds. State is kept, and jobs whose code did not change go on.`,
};

/** What runs, in the order in which it ends: first who hands out work, last who remembers it. */
const running: Running[] = [];
let stoppingSince: number | undefined;

/** Where everything is said, from the moment that the options are known. */
let out = new Console();

const say = (text: string) => out.say(text);

/** Runs the launcher; returns when everything is up, or has been refused. */
export async function start(command: Command, args: string[], project = readProject()): Promise<void> {
  const services = await localServices(project);
  const swallowed = swallowedByNpm(args, services, process.env);
  if (swallowed !== undefined) {
    const right = typed(project, command, swallowed);
    console.error(`npm takes options for its own unless they are behind "--". Type: ${right}`);
    process.exit(2);
  }
  const options = readOptions(project, command, args, services);
  if (options.help) return console.log(help(project, command, services));
  if (options.config !== undefined) return printConfiguration(project, options, options.config);
  out = new Console({ detail: detailOf(command, process.env), plain: options.plain });
  watchSignals();
  await run(project, command, options, services).catch(fail);
}

async function run(project: Project, command: Command, options: Options, services: readonly LocalService[]) {
  const { data } = options;
  const { env } = process;
  const worker = workerOf(project);
  if (data !== undefined) takeDirectory(data);
  const { ports, said } = await choosePorts({
    asked: options.ports,
    remembered: (data !== undefined && recordOf(data)?.ports) || {},
    without: env.RESONATE_URL ? ["resonate"] : [],
    optionOf: OPTION_OF,
    host: HOST,
  });
  for (const line of said) say(line);
  out.print("Starting Resonate, the worker and the edge ...");
  const on = await Promise.all(
    options.services.map(async (service) => ({ service, port: await getPort({ host: HOST }) })),
  );
  const secret = env.RESONATE_LOCAL_TOKEN || env.RESONATE_TOKEN || randomBytes(32).toString("hex");
  const stack = describeStack({ ports, data, worker, services: on, secret, env });
  const { edgeUrl, resonateUrl, workerUrl } = stack;
  const url = `${edgeUrl}/mcp`;
  if (data !== undefined) {
    const record = { ports, url, resonateUrl, workerUrl, project: project.root };
    writeRecord(data, stack.resonate ? { ...record, resonateToken: secret } : record);
  }

  const bindings = { TASK_KEY: env.TASK_KEY || (await taskKey(data)) };
  const [bundle] = await Promise.all([
    command === "start" ? bundleEdge() : undefined,
    ...stack.services.map((service) => keep(service, "service")),
    stack.resonate ? keep(stack.resonate, "resonate") : checkOther(resonateUrl, "RESONATE_URL"),
  ]);
  if (bundle) {
    const edge = stack.edge(bundle, ports.edge, bindings);
    await Promise.all([keep(stack.worker(healthHost(env), ports.worker), "worker"), keep(edge, "edge")]);
  } else {
    await develop({ project, stack, ports, bindings, data, say, listening, running });
  }
  await waitUntilUp("the edge to reach Resonate", [`${edgeUrl}/ready`], AbortSignal.timeout(READY_TIMEOUT), say);
  if (stoppingSince) return;
  out.print(describe(project, command, options, stack, url));
  const pageOf = await pagesAt(edgeUrl);
  out.follow(hasEnded(stack.resonateUrl, stack.resonate ? secret : env.RESONATE_TOKEN, env.RESONATE_NAMESPACE), pageOf);
  for (const service of services.filter((service) => !options.services.includes(service))) {
    const lines = (await service.check?.(env)) ?? [];
    if (!stoppingSince) for (const line of lines) say(line);
  }
}

function describe(project: Project, command: Command, { data, services }: Options, stack: Stack, url: string) {
  // What another run has to be told to find the address of this one.
  const elsewhere = data === undefined ? [`--port ${new URL(url).port}`] : [`--data ${data}`];
  const place = data === DATA ? [] : elsewhere;
  const state = data === undefined ? "in memory" : `state in ${data}`;
  const resonate = stack.resonate ? `embedded, ${state}` : "from RESONATE_URL";
  return banner({
    name: project.name,
    url,
    facts: [
      ["Resonate", `${stack.resonateUrl} (${resonate})`],
      ...services.flatMap(({ banner, option }) => (banner ? [[`--${option.name}`, banner] as const] : [])),
    ],
    configCommand: (client) => typed(project, command, [`--config ${client}`, ...place].join(" ")),
    ready: command === "dev" ? "Ready. Edits are served as they are saved." : "Ready.",
  });
}

/** Starts a service and keeps it running; resolves when it answers. `label` is what its own messages are marked with. */
function keep(service: Service, label: string): Promise<void> {
  const supervised = supervise({ ...service, onLine: listening(label) }, say);
  running.unshift(supervised);
  supervised.ended.catch(fail);
  return supervised.ready;
}

/** Asks the Resonate server whether a job has ended: one that is cancelled while it sleeps has no worker to say it. */
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

/** The address of a job's page, by its promise without the namespace; undefined for an edge that has no pages. */
async function pagesAt(edgeUrl: string): Promise<((job: string) => string) | undefined> {
  const { ok } = await fetch(`${edgeUrl}/jobs`).catch(() => ({ ok: false }));
  return ok ? (job) => `${edgeUrl}/jobs/${encodeURIComponent(splitKey(job).name)}` : undefined;
}

/** Shows what is worth it of the lines that a process writes. */
export type Listening = typeof listening;
function listening(label: string) {
  return (line: string, stream: "stdout" | "stderr") => out.hear(label, line, stream);
}

function detailOf(command: Command, { LOG_LEVEL = "" }: NodeJS.ProcessEnv): Detail {
  if (/^(debug|trace)$/.test(LOG_LEVEL)) return "all";
  return command === "dev" ? "author" : "news";
}

/** Waits until a server that somebody else runs, and what it depends on, is ready. */
async function checkOther(url: string, name: string): Promise<void> {
  if (await answerAll([`${url}/ready`], AbortSignal.timeout(OTHERS_TIMEOUT))) return;
  const refused = await fetch(`${url}/ready`, { signal: AbortSignal.timeout(OTHERS_TIMEOUT) }).then(
    () => undefined,
    (error: Error) => (error.cause as NodeJS.ErrnoException | undefined)?.code,
  );
  const isThere = refused === undefined;
  if (isThere && (await waitUntilUp(`${name}`, [`${url}/ready`], AbortSignal.timeout(READY_TIMEOUT), say))) return;
  throw new Error(`${url} (${name}) is not ready: ${refused ?? "it does not say that it is"}.`);
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

function help(project: Project, command: Command, services: readonly LocalService[]): string {
  return usage(typed(project, command, "[options]"), WHAT[command], services);
}

function readOptions(project: Project, command: Command, args: string[], services: readonly LocalService[]): Options {
  try {
    return parseOptions(args, services, process.env);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${help(project, command, services)}`);
    process.exit(2);
  }
}

function printConfiguration(project: Project, { ports, data }: Options, client: string): void {
  const known = data === undefined ? undefined : recordOf(data);
  // Of what runs there: in front of another server it is a project of its own, with that one's name.
  const { name } = known?.project === undefined ? project : readProject(known.project);
  const port = ports.edge ?? known?.ports.edge ?? 8787;
  console.log(clientText(name, `http://${HOST}:${port}/mcp`, client));
}

function interrupted(): void {
  if (stoppingSince === undefined) {
    say("Stopping ...");
    void stop(0);
  } else if (Date.now() - stoppingSince > SAME_SIGNAL) {
    process.exit(1); // What still runs is tethered to this process and ends with it.
  }
}

function watchSignals(): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, interrupted);
  if (process.env.npm_lifecycle_event === undefined) return;
  // npm runs this in a shell and signals the shell; one that dies of the signal without passing it on orphans us.
  const shell = process.ppid;
  const orphaned = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(orphaned);
    interrupted();
  }, 250).unref();
}
