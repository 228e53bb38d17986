/** Hundreds of thousands of sleeping timers, and their cost for other callers. */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { sum } from "simple-statistics";
import { callerOf } from "../../core/author/index.ts";
import { bearerBindings } from "../../test/auth/support.ts";
import { rpc } from "../../test/support/rpc.ts";
import { type Stack, startStack } from "../../test/support/stack.ts";
import { cpuSeconds } from "../../test/support/usage.ts";
import { type Database, plant, readTemplate, sleeperId } from "./plant.ts";
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
const [CALLER, TOKEN] = ["ada", "token-of-ada"];

/** How many timers are set through the edge, due during the traffic. */
const SAMPLE = 100;

/** A timer that is later than this counts as not completed, in milliseconds. */
const PATIENCE = 15_000;

export async function runSleepers(options: SleepersOptions): Promise<SleepersResult> {
  const { sleepers, hours, rest, seconds, rate, database, metricsUrl, say } = options;
  const bindings = { ...bearerBindings({ [CALLER]: TOKEN }), MAX_JOBS: "1000000", LOG_LEVEL: "warn" };
  await using stack = await startStack({ workers: 2, bindings });
  const setTimer = async (timer_name: string, fires_at: number) => {
    const args = { timer_name, seconds: Math.round((fires_at - Date.now()) / 1_000) };
    const { result } = await rpc(
      stack.url,
      "tools/call",
      { name: "set_timer", arguments: args },
      { capabilities: {}, token: TOKEN },
    );
    if (result.isError) throw new Error(result.content[0].text);
  };
  // Postgres takes longer to write and flush the copies.
  const speed = "postgres" in database ? 2_500 : 8_000;
  const from = Date.now() + (sleepers / speed) * 1_000;
  const step = (hours * 3_600_000) / Math.max(sleepers, 1);
  const dueAt = (n: number) => from + n * step;
  const own = stack.namespace + (await callerOf(CALLER)).key;
  await setTimer(TEMPLATE, from + hours * 3_600_000);
  const template = await readTemplate(stack.resonate, `${own}timer_${TEMPLATE}`);
  const began = Date.now();
  await plant(database, template, { count: sleepers, dueAt });
  say(`${sleepers} sleepers are written after ${((Date.now() - began) / 1_000).toFixed(0)} s`);
  await delay(Math.max(0, from - Date.now()) + 5_000);
  const last = Date.now() + (rest + seconds) * 1_000;
  const sample = Array.from({ length: SAMPLE }, (_, n) => `sample${n}`);
  for (const [n, name] of sample.entries()) await setTimer(name, last - (n / SAMPLE) * seconds * 1_000);

  const processes = processesOf(stack, options);
  const measure = async (work: () => Promise<unknown>) => {
    const before = processes.map(({ cpu }) => cpu());
    const [start, sent] = [performance.now(), await messagesSent(metricsUrl)];
    await work();
    const minutes = (performance.now() - start) / 60_000;
    const cpu = processes.map(({ cpu }, i) => (cpu() - (before[i] ?? 0)) / minutes);
    return { cpu, messages: ((await messagesSent(metricsUrl)) - sent) / minutes };
  };
  const since = Date.now();
  const atRest = await measure(() => delay(rest * 1_000));
  say(`${rest} s at rest are over`);
  const traffic = startTraffic(stack, rate, TOKEN);
  const busy = await measure(() => delay(seconds * 1_000));
  const until = Date.now();
  await traffic.stop();
  say(`${traffic.requests} requests were made in ${seconds} s`);
  await delay(PATIENCE);

  const wrong = [...traffic.wrong];
  const first = Math.ceil((since - from) / step);
  const due = Array.from(
    { length: Math.max(0, Math.min(sleepers, Math.floor((until - from) / step)) - first) },
    (_, i) => ({
      id: sleeperId(template, first + i),
      at: Math.round(dueAt(first + i)),
    }),
  );
  const set = Array.from({ length: traffic.kinds["set a timer"] ?? 0 }, (_, n) => `t${n}`);
  const live = [...sample, ...set].map((name) => ({ id: `${own}timer_${name}`, at: undefined }));
  return {
    usage: Object.fromEntries(
      processes.map(({ name, memory }, i) => [
        name,
        {
          "CPU at rest, s/min": atRest.cpu[i] ?? 0,
          "CPU under traffic, s/min": busy.cpu[i] ?? 0,
          "memory, MB": memory(),
        },
      ]),
    ),
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
