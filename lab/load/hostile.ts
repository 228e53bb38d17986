/**
 * Measures how much slower the calls of ten ordinary callers become, and which fail: alone, beside a hostile caller that uses all
 * its limits, and beside the same requests sent to a server that only reads them.
 */
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { execa } from "execa";
import { bearerBindings } from "../../test/auth/support.ts";
import { type RpcOptions, rpc, rpcHeaders, rpcMessage } from "../../test/support/rpc.ts";
import { startStack } from "../../test/support/stack.ts";
import { COUNTING } from "../../test/wrap/servers.ts";
import { wrappedStack } from "../../test/wrap/support.ts";

export interface HostileOptions {
  /** How long each of the three situations lasts in total, in seconds. They take turns. */
  seconds: number;
  /** Whether the calls go to a wrapped server. */
  isWrapped: boolean;
  say: (line: string) => void;
}

export interface HostileResult {
  /** Milliseconds by kind of an ordinary caller's call: alone, beside the same load elsewhere, and beside the hostile one. */
  alone: Record<string, number[]>;
  elsewhere: Record<string, number[]>;
  beside: Record<string, number[]>;
  /** Failed calls of ordinary callers. */
  failed: string[];
  /** The answers to the hostile caller, by kind. */
  hostile: Counts;
}

const ORDINARY = Array.from({ length: 10 }, (_, n) => `ordinary${n}`);
const HOSTILE = "hostile";
const tokenOf = (name: string) => `static-token-of-${name}`;

/** The pause between the requests of an ordinary caller, in milliseconds. */
const PAUSE = 500;

/** How often the three situations take turns, so that other work on the machine affects all of them. */
const TURNS = 3;

/** The hostile caller's concurrent requests. */
const PARALLEL = 32;

export async function runHostile({ seconds, isWrapped, say }: HostileOptions): Promise<HostileResult> {
  const tokens = Object.fromEntries([...ORDINARY, HOSTILE].map((name) => [name, tokenOf(name)]));
  const bindings = { ...bearerBindings(tokens), RATE_LIMIT: "600", LOG_LEVEL: "error" };
  await using stack = await (isWrapped ? startWrapped(bindings) : startStack({ workers: 2, bindings, beside: {} }));
  // If the deployment has two isolates, both are used.
  const urls = "beside" in stack ? [stack.url, stack.beside] : [stack.url];
  const failed: string[] = [];
  const measure = async (latencies: Record<string, number[]>) => {
    const end = Date.now() + (seconds * 1_000) / TURNS;
    const round = isWrapped ? wrappedRound : ownRound;
    await Promise.all(
      ORDINARY.map((name, n) => ordinary(urls[n % urls.length] as string, name, { end, round, latencies, failed })),
    );
  };
  say(`${ORDINARY.length} ordinary callers, to warm up, and then alone and beside a hostile one in turns`);
  await Promise.all(ORDINARY.map((name) => rpc(stack.url, "tools/list", {}, options(name))));
  const result: HostileResult = { alone: {}, elsewhere: {}, beside: {}, failed, hostile: {} };
  const measureBeside = async (latencies: Record<string, number[]>, at: readonly string[], counts: Counts) => {
    const over = new AbortController();
    const attacking = attack(at, isWrapped ? wrappedAsks : ownAsks, { signal: over.signal, counts });
    await measure(latencies);
    over.abort();
    await attacking;
  };
  const { sink, port } = await startSink();
  const elsewhere = urls.map(() => `http://127.0.0.1:${port}/mcp`);
  for (let turn = 0; turn < TURNS; turn++) {
    await measure(result.alone);
    await measureBeside(result.elsewhere, elsewhere, {});
    await measureBeside(result.beside, urls, result.hostile);
  }
  sink.kill();
  return result;
}

type Counts = Record<string, number>;

async function startSink() {
  const sink = execa(process.execPath, ["lab/load/sink.ts"], { reject: false });
  const [port] = await once(sink.stdout, "data");
  return { sink, port: Number(port) };
}

/** A wrapped server whose calls take as long as their arguments say, four at a time. */
function startWrapped(bindings: Record<string, string>) {
  const calls = join(".build", `hostile-${process.pid}.calls`);
  const program = { command: process.execPath, args: [COUNTING], env: { CALLS: calls } };
  return wrappedStack({ name: "counting", ...program, concurrency: 4, after: 5_000 }, { bindings });
}

type Timed = (what: string, tool: string, args: object) => Promise<unknown>;
type Round = (timed: Timed, who: number, n: number) => Promise<void>;

interface Measured {
  end: number;
  round: Round;
  latencies: Record<string, number[]>;
  failed: string[];
}

/** Acts like a person with an agent, round after round. */
async function ordinary(url: string, name: string, { end, round, latencies, failed }: Measured): Promise<void> {
  const timed: Timed = async (what, tool, args) => {
    const from = performance.now();
    try {
      const { result, error } = await rpc(url, "tools/call", { name: tool, arguments: args }, options(name));
      if (error || result.isError) throw new Error(error?.message ?? result.content[0].text);
      latencies[what] ??= [];
      latencies[what].push(performance.now() - from);
    } catch (error) {
      failed.push(`${what}: ${(error as Error).message}`);
    }
  };
  for (let n = Math.floor(end / 1_000) % 1_000; Date.now() < end; n++) {
    await round(timed, ORDINARY.indexOf(name), n);
    await delay(PAUSE);
  }
}

/** Starts jobs, looks at them, waits for them. */
const ownRound: Round = async (timed, who, n) => {
  const timer_name = `t${n}`;
  await timed("set a timer", "set_timer", { timer_name, seconds: 1 });
  await timed("look at a job", "probe_status", { job_names: [`timer_${timer_name}`] });
  await timed("wait for a timer of 1 s", "await_result", { job_names: [`timer_${timer_name}`], timeout_seconds: 30 });
  const place = { latitude: 47.2 + who / 100, longitude: -122.3 };
  await timed("gather a month", "weather_data", { ...place, year: 2012 + (n % 4), month: (n % 12) + 1 });
  await timed("list jobs", "list_jobs", { limit: 10 });
};

const wrappedRound: Round = async (timed, who, n) => {
  await timed("call a wrapped tool", "read", { id: `${who} ${n}`, ms: 20 });
  // A list weighs ten calls, and rounds are short.
  if (n % 4 === 0) await timed("list jobs", "list_jobs", { limit: 10 });
};

const options = (name: string): RpcOptions => ({ capabilities: {}, token: tokenOf(name) });

interface Ask {
  tool: string;
  args: object;
}

/** Malformed arguments, a long text, and lists that match nothing. Each causes work that must be refused or charged. */
const MALFORMED = Array.from({ length: 10_000 }, () => ({ job_name: { job_name: "x".repeat(10) } }));
const MALFORMED_ASK: Ask = { tool: "probe_status", args: { job_names: MALFORMED } };
const LONG_ASK: Ask = { tool: "set_timer", args: { timer_name: "x".repeat(900_000), seconds: 1 } };
const TIMER = JSON.stringify({ timer_name: "hostile", seconds: 1 });
const NAMES = Array.from({ length: 100 }, (_, n) => `timer_hostile${n}`);

const ownAsks = (n: number): Ask[] => [
  {
    tool: "weather_range",
    args: { latitude: 47.2 + (n % 50) / 100, longitude: -121.5, from: "1990-01", to: "2009-12", confirm: true },
  },
  { tool: "set_timer", args: { timer_name: `hostile${n % 1_000}`, seconds: 31_536_000 } },
  { tool: "await_result", args: { job_names: [`timer_hostile${n % 1_000}`], timeout_seconds: 285 } },
  { tool: "probe_status", args: { job_names: NAMES } },
  { tool: "schedule_job", args: { name: `s${n}`, tool: "set_timer", arguments: TIMER, every: 60 } },
  { tool: "list_jobs", args: { limit: 100 } },
  MALFORMED_ASK,
  { tool: "forget_jobs", args: { job_names: NAMES } },
  LONG_ASK,
  { tool: "list_jobs", args: { limit: 100, status: "failed" } },
  { tool: "list_jobs", args: { limit: 100, cursor: `${n} timer_forged` } },
  { tool: "cancel_job", args: { job_names: [`timer_hostile${n % 1_000}`] } },
];

/** Calls that take long, and calls with long arguments, all of which must be stored. */
const wrappedAsks = (n: number): Ask[] => [
  { tool: "write", args: { id: `hostile ${n}`, ms: 3_600_000 } },
  { tool: "read", args: { id: `hostile ${n}`, ms: 15_000 } },
  { tool: "read", args: { id: `${n} ${"x".repeat(900_000)}`, ms: 0 } },
  { tool: "list_jobs", args: { limit: 100, status: "failed" } },
];

/** Requests to the paths besides `/mcp`, with content that all of them must refuse. */
const DEEP = "[".repeat(100_000);
const DOORS: readonly (readonly [method: string, path: string, body?: string])[] = [
  ["POST", "/reports", DEEP],
  ["POST", "/callbacks/forged", DEEP],
  ["GET", "/resonate/poll/workers/x"],
  ["POST", "/resonate", DEEP],
  ["GET", "/operate/overview"],
  ["POST", "/operate/act", DEEP],
  ["GET", "/files/forged"],
  ["GET", "/pages/job/forged"],
];

async function knock(url: string, n: number, signal: AbortSignal): Promise<string> {
  const [method, path, body] = DOORS[n % DOORS.length] as (typeof DOORS)[number];
  const headers = { authorization: `Bearer ${tokenOf(HOSTILE)}`, "content-type": "application/json" };
  const init = { method, headers, ...(body !== undefined && { body }), signal };
  const answered = fetch(new URL(path, url), init).then(async (response) => {
    await response.text();
    return response.status;
  });
  return `${path}: ${await answered.catch(() => "no answer")}`;
}

/** Sends all allowed requests to all isolates, and counts the answers. */
async function attack(
  urls: readonly string[],
  asks: (n: number) => Ask[],
  { signal, counts }: { signal: AbortSignal; counts: Counts },
): Promise<void> {
  // Bodies are serialized once, because this process also measures.
  const bodies = new WeakMap<object, string>();
  const bodyOf = (params: { arguments: object }) => {
    const known = bodies.get(params.arguments) ?? JSON.stringify(rpcMessage("tools/call", params, {}));
    bodies.set(params.arguments, known);
    return known;
  };
  let n = 0;
  const one = async () => {
    while (!signal.aborted) {
      const turn = n++;
      if (turn % 4 === 3) {
        const kind = await knock(urls[turn % urls.length] as string, Math.floor(turn / 4), signal);
        counts[kind] = (counts[kind] ?? 0) + 1;
        await delay(20);
        continue;
      }
      const all = asks(Math.floor(turn / 20));
      const { tool, args } = all[Math.floor(turn / urls.length) % all.length] as Ask;
      const params = { name: tool, arguments: args };
      const answered = await fetch(urls[turn % urls.length] as string, {
        method: "POST",
        headers: { ...rpcHeaders("tools/call", params), authorization: `Bearer ${tokenOf(HOSTILE)}` },
        body: bodyOf(params),
        // A stream is not read to its end.
        signal: AbortSignal.any([signal, AbortSignal.timeout(30_000)]),
      })
        .then(async (response) => {
          if (tool === "await_result" && response.ok) void response.text().catch(() => {});
          else await response.text();
          return String(response.status);
        })
        .catch(() => "no answer");
      const kind = `${tool}: ${answered}`;
      counts[kind] = (counts[kind] ?? 0) + 1;
      // The pause keeps this process from distorting the measurement.
      await delay(20);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, one));
}
