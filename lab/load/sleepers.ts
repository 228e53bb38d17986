/** Hundreds of thousands of sleeping timers, and their cost for other callers. */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { sum } from "simple-statistics";
import { callerOf } from "../../core/author/index.ts";
import { bearerBindings } from "../../test/auth/support.ts";
import { rpc } from "../../test/support/rpc.ts";
import { type Stack, startStack } from "../../test/support/stack.ts";
import { cpuSeconds } from "../../test/support/usage.ts";
import { type Database, plant, readTemplate, sleeperId, type Template } from "./plant.ts";
import { startTraffic } from "./traffic.ts";

export interface SleepersOptions {
  sleepers: number;
  /** The timers fall due evenly over this many hours. */
  hours: number;
  /** How long the server runs without traffic, and then with traffic, in seconds. */
  rest: number;
  seconds: number;
  /** Requests per second. */
  rate: number;
  /** The database and the process of the server at `RESONATE_URL`. */
  database: Database;
  resonatePid: number;
  /** The id of the main process of Postgres. */
  databasePid?: number | undefined;
  /** The URL of the server's metrics, which count the sent messages. */
  metricsUrl: string;
  say: (line: string) => void;
}

/** The usage of a process: seconds of CPU per minute, and megabytes of memory at the end. */
export interface Usage {
  "CPU at rest, s/min": number;
  "CPU under traffic, s/min": number;
  "memory, MB": number;
}

export interface SleepersResult {
  usage: Record<string, Usage>;
  /** The messages that the server sent per minute. */
  messages: { rest: number; traffic: number };
  /** The durations of requests by kind, and how late timers were, in milliseconds. */
  latencies: Record<string, number[]>;
  /** The sleepers that fell due, and those that did not complete or fired early. */
  due: number;
  wrong: string[];
}

const TEMPLATE = "sleeper";
/** The caller of all timers. Without callers, a list would be a search over the whole server. */
const [CALLER, TOKEN] = ["ada", "static-token-of-ada"];

/** How many timers are set through the edge, due during the traffic. */
const SAMPLE = 100;

/** A timer that is later than this counts as not completed. */
const MAX_LATENESS_MS = 15_000;

export async function runSleepers(options: SleepersOptions): Promise<SleepersResult> {
  const { rest, seconds, rate, metricsUrl, say } = options;
  const bindings = { ...bearerBindings({ [CALLER]: TOKEN }), MAX_JOBS: "1000000", LOG_LEVEL: "warn" };
  await using stack = await startStack({ workers: 2, bindings });
  const prefix = `${stack.namespace}${(await callerOf(CALLER)).key}timer_`;
  const schedule = scheduleOf(options);
  const template = await plantSleepers(stack, options, schedule, prefix);
  const sample = await setSample(stack, Date.now() + (rest + seconds) * 1_000, seconds);

  const processes = processesOf(stack, options);
  const start = Date.now();
  const atRest = await measureUsage(processes, metricsUrl, () => delay(rest * 1_000));
  say(`${rest} s at rest are over`);
  const traffic = startTraffic(stack, rate, TOKEN);
  const busy = await measureUsage(processes, metricsUrl, () => delay(seconds * 1_000));
  const end = Date.now();
  await traffic.stop();
  say(`${traffic.requests} requests were made in ${seconds} s`);
  await delay(MAX_LATENESS_MS);

  const wrong = [...traffic.wrong];
  const due = sleepersDue(template, schedule, start, end);
  const timers = Array.from({ length: traffic.kinds["set a timer"] ?? 0 }, (_, n) => `t${n}`);
  const live = [...sample, ...timers].map((name) => ({ id: prefix + name, at: undefined }));
  return {
    usage: usageOf(processes, atRest.cpu, busy.cpu),
    messages: { rest: atRest.messages, traffic: busy.messages },
    latencies: {
      ...traffic.latencies,
      "a sleeper late by": await lateness(stack, due, wrong),
      "a timer of the edge's late by": await lateness(stack, live, wrong),
    },
    due: due.length,
    wrong,
  };
}

/** When the sleepers fall due, in milliseconds: the first at `start`, and the others `interval` apart. */
interface Schedule {
  sleepers: number;
  start: number;
  interval: number;
}

/** The first sleeper falls due when all are written. */
function scheduleOf({ sleepers, hours, database }: SleepersOptions): Schedule {
  // Postgres takes longer to write and flush the copies.
  const speed = "postgres" in database ? 2_500 : 8_000;
  return {
    sleepers,
    start: Date.now() + (sleepers / speed) * 1_000,
    interval: (hours * 3_600_000) / Math.max(sleepers, 1),
  };
}

const dueAt = ({ start, interval }: Schedule, n: number) => start + n * interval;

/** Writes the sleepers, as copies of a timer that is set through the edge, and waits until they begin to fall due. */
async function plantSleepers(
  stack: Stack,
  { sleepers, hours, database, say }: SleepersOptions,
  schedule: Schedule,
  prefix: string,
): Promise<Template> {
  await setTimer(stack, TEMPLATE, schedule.start + hours * 3_600_000);
  const template = await readTemplate(stack.resonate, prefix + TEMPLATE);
  const start = Date.now();
  await plant(database, template, { count: sleepers, dueAt: (n) => dueAt(schedule, n) });
  say(`${sleepers} sleepers are written after ${((Date.now() - start) / 1_000).toFixed(0)} s`);
  await delay(Math.max(0, schedule.start - Date.now()) + 5_000);
  return template;
}

/** Sets timers through the edge that fall due evenly over the last `seconds` before `last`; returns their names. */
async function setSample(stack: Stack, last: number, seconds: number): Promise<string[]> {
  const sample = Array.from({ length: SAMPLE }, (_, n) => `sample${n}`);
  for (const [n, name] of sample.entries()) await setTimer(stack, name, last - (n / SAMPLE) * seconds * 1_000);
  return sample;
}

async function setTimer(stack: Stack, timer_name: string, fires_at: number): Promise<void> {
  const args = { timer_name, seconds: Math.round((fires_at - Date.now()) / 1_000) };
  const params = { name: "set_timer", arguments: args };
  const { result } = await rpc(stack.url, "tools/call", params, { capabilities: {}, token: TOKEN });
  if (result.isError) throw new Error(result.content[0].text);
}

/** The sleepers that fell due between two times. */
function sleepersDue(template: Template, schedule: Schedule, after: number, before: number) {
  const indexAt = (time: number) => (time - schedule.start) / schedule.interval;
  const first = Math.ceil(indexAt(after));
  const end = Math.min(schedule.sleepers, Math.floor(indexAt(before)));
  return Array.from({ length: Math.max(0, end - first) }, (_, i) => ({
    id: sleeperId(template, first + i),
    at: Math.round(dueAt(schedule, first + i)),
  }));
}

type MeasuredProcess = ReturnType<typeof processesOf>[number];

/** The CPU seconds of each process, and the messages of the server, per minute of the work. */
async function measureUsage(processes: MeasuredProcess[], metricsUrl: string, work: () => Promise<unknown>) {
  const before = processes.map(({ cpu }) => cpu());
  const [start, sent] = [performance.now(), await messagesSent(metricsUrl)];
  await work();
  const minutes = (performance.now() - start) / 60_000;
  const cpu = processes.map(({ cpu }, i) => (cpu() - (before[i] ?? 0)) / minutes);
  return { cpu, messages: ((await messagesSent(metricsUrl)) - sent) / minutes };
}

function usageOf(processes: MeasuredProcess[], atRest: number[], busy: number[]): Record<string, Usage> {
  const usage: Record<string, Usage> = {};
  for (const [i, { name, memory }] of processes.entries()) {
    usage[name] = {
      "CPU at rest, s/min": atRest[i] ?? 0,
      "CPU under traffic, s/min": busy[i] ?? 0,
      "memory, MB": memory(),
    };
  }
  return usage;
}

/** How late timers completed, in milliseconds. Adds timers that did not complete, or were early, to `wrong`. */
async function lateness(stack: Stack, timers: { id: string; at: number | undefined }[], wrong: string[]) {
  const late: number[] = [];
  for (const { id, at } of timers) {
    const record = await stack.resonate.get(id);
    const fires = at ?? Date.parse(record?.param.data.args[0].fires_at);
    const by = (record?.settledAt ?? Number.NaN) - fires;
    if (record?.state === "resolved" && by >= 0) late.push(by);
    else wrong.push(`${id} is ${record?.state}, ${by} ms after it was due`);
  }
  return late;
}

async function messagesSent(url: string): Promise<number> {
  const text = await (await fetch(url)).text();
  return sum([...text.matchAll(/^resonate_messages_total\{.*\} (\d+)$/gm)].map(([, n]) => Number(n)).concat(0));
}

function processesOf({ edge, workers }: Stack, { resonatePid, databasePid }: SleepersOptions) {
  const one = (name: string, pid: number) => ({
    name,
    cpu: () => cpuSeconds(pid),
    memory: () => proportional(pid),
  });
  return [
    one("edge", edge.process.pid),
    ...workers.map(({ process }, i) => one(`worker ${i + 1}`, process.pid)),
    one("Resonate", resonatePid),
    ...(databasePid === undefined ? [] : [family("Postgres", databasePid)]),
  ];
}

/** The usage of a process with its children, including ended ones. */
function family(name: string, pid: number) {
  const children = () =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  const ended = () => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /, "")
      .split(" ");
    return (Number(fields[13]) + Number(fields[14])) / 100; // cutime and cstime, in hundredths of a second
  };
  const all = () => [pid, ...children()];
  return { name, cpu: () => sum(all().map(cpuSeconds)) + ended(), memory: () => sum(all().map(proportional)) };
}

/** Memory in megabytes; shared memory counts proportionally. */
function proportional(pid: number): number {
  const kibibytes = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1];
  return (Number(kibibytes) * 1_024) / 1e6;
}
