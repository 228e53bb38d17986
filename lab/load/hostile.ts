/** Ten ordinary callers, alone and beside a hostile one that uses all its limits: how much slower their calls become, and which fail. */
import { setTimeout as delay } from "node:timers/promises";
import { bearerBindings } from "../../test/auth/support.ts";
import { type RpcOptions, rpc, rpcHeaders, rpcMessage } from "../../test/support/rpc.ts";
import { type Stack, startStack } from "../../test/support/stack.ts";

export interface HostileOptions {
  /** How long each of the two runs lasts, in seconds. */
  seconds: number;
  say: (line: string) => void;
}

export interface HostileResult {
  /** Milliseconds by kind of an ordinary caller's call: alone, and beside the hostile one. */
  alone: Record<string, number[]>;
  beside: Record<string, number[]>;
  /** Failed calls of ordinary callers. */
  failed: string[];
  /** The answers to the hostile caller, by kind. */
  hostile: Record<string, number>;
}

const ORDINARY = Array.from({ length: 10 }, (_, n) => `ordinary${n}`);
const HOSTILE = "hostile";
const tokenOf = (name: string) => `token-of-${name}`;

/** Pause between the requests of an ordinary caller, in milliseconds. */
const PAUSE = 500;

/** The hostile caller's concurrent requests. */
const PARALLEL = 32;

export async function runHostile({ seconds, say }: HostileOptions): Promise<HostileResult> {
  const tokens = Object.fromEntries([...ORDINARY, HOSTILE].map((name) => [name, tokenOf(name)]));
  const bindings = { ...bearerBindings(tokens), RATE_LIMIT: "600", LOG_LEVEL: "error" };
  await using one = await startStack({ workers: 2, bindings });
  // Another edge of the same deployment, before the same server.
  await using other = await startStack({
    resonate: one.resonate,
    workers: 0,
    bindings: { ...bindings, RESONATE_NAMESPACE: one.namespace, RESONATE_GROUP: one.group },
  });
  const edges = [one, other];
  const failed: string[] = [];
  const measure = async () => {
    const latencies: Record<string, number[]> = {};
    const end = Date.now() + seconds * 1_000;
    await Promise.all(ORDINARY.map((name, n) => ordinary(edges[n % 2] as Stack, name, end, latencies, failed)));
    return latencies;
  };
  say("ten ordinary callers, alone");
  const alone = await measure();
  // The rate limits of the previous minute no longer count.
  await delay(60_000);
  say("and beside a hostile one");
  const over = new AbortController();
  const attacking = attack(edges, over.signal);
  const beside = await measure();
  over.abort();
  return { alone, beside, failed, hostile: await attacking };
}

/** Acts like a person with an agent: starts jobs, looks at them, waits for them. */
async function ordinary(
  { url }: Stack,
  name: string,
  end: number,
  latencies: Record<string, number[]>,
  failed: string[],
): Promise<void> {
  const timed = async (what: string, tool: string, args: object) => {
    const from = performance.now();
    try {
      const { result, error } = await rpc(url, "tools/call", { name: tool, arguments: args }, options(name));
      if (error || result.isError) throw new Error(error?.message ?? result.content[0].text);
      latencies[what] ??= [];
      latencies[what].push(performance.now() - from);
      return result.structuredContent;
    } catch (error) {
      failed.push(`${what}: ${(error as Error).message}`);
      return undefined;
    }
  };
  const place = { latitude: 47.2 + ORDINARY.indexOf(name) / 100, longitude: -122.3 };
  for (let n = Math.floor(end / 1_000) % 1_000; Date.now() < end; n++) {
    const timer_name = `t${n}`;
    await timed("set a timer", "set_timer", { timer_name, seconds: 1 });
    await timed("look at a job", "probe_status", { job_names: [`timer_${timer_name}`] });
    await timed("wait for a timer of 1 s", "await_result", { job_names: [`timer_${timer_name}`], timeout_seconds: 30 });
    const month = { ...place, year: 2012 + (n % 4), month: (n % 12) + 1 };
    await timed("gather a month", "weather_data", month);
    await timed("list jobs", "list_jobs", { limit: 10 });
    await delay(PAUSE);
  }
}

const options = (name: string): RpcOptions => ({ capabilities: {}, token: tokenOf(name) });

/** Sends all allowed requests to both edges, and counts the answers. */
async function attack(edges: readonly Stack[], signal: AbortSignal): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const call = (url: string, tool: string, args: object) => ({
    url,
    what: tool,
    method: "tools/call",
    params: { name: tool, arguments: args },
  });
  /** What is malformed, a long text, and lists that match nothing: each asks for work that is refused or charged. */
  const malformed = Array.from({ length: 10_000 }, () => ({ job_name: { job_name: "x".repeat(10) } }));
  const names = Array.from({ length: 100 }, (_, n) => `timer_hostile${n}`);
  const asks = (url: string, n: number) => [
    call(url, "weather_range", {
      ...{ latitude: 47.2 + (n % 50) / 100, longitude: -121.5, from: "1990-01", to: "2009-12" },
      confirm: true,
    }),
    call(url, "set_timer", { timer_name: `hostile${n % 1_000}`, seconds: 31_536_000 }),
    call(url, "await_result", { job_names: [`timer_hostile${n % 1_000}`], timeout_seconds: 300 }),
    call(url, "probe_status", { job_names: names }),
    call(url, "list_jobs", { limit: 100 }),
    call(url, "probe_status", { job_names: malformed }),
    call(url, "set_timer", { timer_name: "x".repeat(900_000), seconds: 1 }),
    call(url, "list_jobs", { limit: 100, status: "failed" }),
    call(url, "list_jobs", { limit: 100, cursor: `${n} timer_forged` }),
    call(url, "cancel_job", { job_names: [`timer_hostile${n % 1_000}`] }),
  ];
  let n = 0;
  const one = async () => {
    while (!signal.aborted) {
      const turn = n++;
      const url = (edges[turn % edges.length] as Stack).url;
      const kinds = asks(url, Math.floor(turn / 20));
      const { what, method, params } = kinds[Math.floor(turn / 2) % kinds.length] as (typeof kinds)[number];
      const answered = await fetch(url, {
        method: "POST",
        headers: { ...rpcHeaders(method, params), authorization: `Bearer ${tokenOf(HOSTILE)}` },
        body: JSON.stringify(rpcMessage(method, params, {})),
        // Does not wait for the end of a stream.
        signal: AbortSignal.any([signal, AbortSignal.timeout(30_000)]),
      })
        .then(async (response) => {
          if (what === "await_result" && response.ok) void response.text().catch(() => {});
          else await response.text();
          return String(response.status);
        })
        .catch(() => "no answer");
      const kind = `${what}: ${answered}`;
      counts[kind] = (counts[kind] ?? 0) + 1;
      // A rate at which this process does not distort the measurement.
      await delay(20);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, one));
  return counts;
}
