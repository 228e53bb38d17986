/** `npm start`: Resonate, the worker and the edge on this machine, kept running until Ctrl-C. */
import getPort from "get-port";
import { banner } from "./banner.ts";
import { type Options, parseOptions, USAGE } from "./options.ts";
import { readable, timed } from "./report.ts";
import { describeStack } from "./stack.ts";
import { answers, type Service, type Supervised, supervise } from "./supervise.ts";

const HOST = "127.0.0.1";
const READY_TIMEOUT = 5_000;
const WEATHER_TIMEOUT = 3_000;
/** One Ctrl-C arrives twice, from the terminal and from npm; only a later one is a second. In milliseconds. */
const SAME_SIGNAL = 1_000;

/** What runs, in the order in which it ends: first who hands out work, last who remembers it. */
const running: Supervised[] = [];
let stoppingSince: number | undefined;

const say = (text: string) => console.log(timed(text));

async function main(options: Options): Promise<void> {
  await checkPorts(options);
  console.log("Starting Resonate, the worker and the edge ...");
  const stack = describeStack(options, await getPort({ host: HOST }));
  await Promise.all([
    stack.archive && run(stack.archive, "archive"),
    stack.resonate ? run(stack.resonate, "resonate") : checkReady(stack.resonateUrl, "RESONATE_URL"),
    stack.prepared,
  ]);
  await Promise.all([run(stack.worker, "worker"), run(stack.edge, "edge")]);
  await checkReady(stack.edgeUrl, "the edge");
  console.log(banner(options, stack));
  if (!stack.archive) await warnWithoutWeather(stack.weatherUrl);
}

/** Starts a service and keeps it running; resolves when it answers. `label` is what its own messages are marked with. */
function run(service: Service, label: string): Promise<void> {
  const onLine = (line: string, stream: "stdout" | "stderr") => {
    const text = readable(label, line, stream);
    if (text) say(text);
  };
  const supervised = supervise({ ...service, onLine }, say);
  running.unshift(supervised);
  supervised.ended.catch(fail);
  return supervised.ready;
}

async function checkPorts({ port, resonatePort, workerPort }: Options): Promise<void> {
  const wanted = [
    { port, user: "the edge", option: "--port" },
    { port: workerPort, user: "the worker", option: "--worker-port" },
  ];
  if (!process.env.RESONATE_URL) wanted.push({ port: resonatePort, user: "Resonate", option: "--resonate-port" });
  for (const [i, { port, user, option }] of wanted.entries()) {
    const other = wanted.slice(0, i).find((earlier) => earlier.port === port);
    if (other) throw new Error(`${other.option} and ${option} are both ${port}.`);
    // It answers with another port when this one is taken.
    if ((await getPort({ port, host: HOST })) !== port) {
      throw new Error(`Port ${port} is already in use. Choose another one for ${user} with ${option}.`);
    }
  }
}

/** Waits until a server, and what it depends on, is ready. */
async function checkReady(url: string, name: string): Promise<void> {
  if (await answers([`${url}/ready`], AbortSignal.timeout(READY_TIMEOUT))) return;
  throw new Error(`${url} (${name}) is not ready after ${READY_TIMEOUT / 1_000} s.`);
}

async function warnWithoutWeather(url: string): Promise<void> {
  const reached = await fetch(url, { signal: AbortSignal.timeout(WEATHER_TIMEOUT) }).then(
    () => true,
    () => false,
  );
  if (reached || stoppingSince) return;
  say(`${new URL(url).host} cannot be reached: gatherings will be retried and then fail. Timers work.`);
  say("To try gatherings without it, start with bundled weather: npm start -- --sample-weather");
}

async function stop(exitCode: number): Promise<void> {
  if (stoppingSince) return;
  stoppingSince = Date.now();
  for (const supervised of running) await supervised.stop();
  process.exit(exitCode);
}

function fail(error: unknown): void {
  if (stoppingSince) return;
  console.error(error instanceof Error ? error.message : error);
  void stop(1);
}

function readOptions(): Options {
  try {
    return parseOptions(process.argv.slice(2));
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    process.exit(2);
  }
}

function interrupted(): void {
  if (stoppingSince === undefined) {
    say("Stopping ...");
    void stop(0);
  } else if (Date.now() - stoppingSince > SAME_SIGNAL) {
    process.exit(1); // What still runs is tethered to this process and ends with it.
  }
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, interrupted);

if (process.env.npm_lifecycle_event !== undefined) {
  // npm runs this in a shell and signals the shell; one that dies of the signal without passing it on orphans us.
  const shell = process.ppid;
  const orphaned = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(orphaned);
    interrupted();
  }, 250).unref();
}

const options = readOptions();
if (options.help) console.log(USAGE);
else await main(options).catch(fail);
