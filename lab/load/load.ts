/** Many concurrent jobs, and many clients that wait for them. */
import PQueue from "p-queue";
import { rpc } from "../../test/support/rpc.ts";
import { type Stack, startStack } from "../../test/support/stack.ts";
import { type Stored, storedJobs } from "../../test/support/stored.ts";
import { timer } from "../../tools/timer/timer.ts";
import { month as weather } from "../../tools/weather/month.ts";
import { type Memory, watchMemory } from "./memory.ts";

export interface LoadOptions {
  timers: number;
  gatherings: number;
  /** The number of clients that wait in `await_result`, each for one job after another. */
  clients: number;
  workers: number;
  /** The time until the first job may end, in seconds; by then all jobs must have been started. */
  hold: number;
  /** Seconds over which the jobs end. */
  spread: number;
  /** The data directory of an embedded server. */
  data: string;
  /** The process id of the server at `RESONATE_URL`, for its memory. */
  resonatePid?: number | undefined;
  say: (line: string) => void;
}

export interface LoadResult {
  jobs: number;
  complete: number;
  mostInFlight: number;
  timersEarly: number;
  /** Samples in milliseconds, by what was measured. */
  latencies: Record<string, number[]>;
  memory: Record<string, Memory>;
  seconds: Record<string, number>;
}

/** How many clients start jobs at the same time, and how many look at them. */
const STARTERS = 32;
const PROBERS = 8;
const PROBES = { 1: 1_000, 50: 200 };

export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const { timers, gatherings, clients, workers, hold, spread, data, resonatePid, say } = options;
  await using stack = await startStack({ workers, ...(process.env.RESONATE_URL === undefined && { own: { data } }) });
  const client = new Client(stack);
  using memory = watchMemory(pidsOf(stack, resonatePid));
  const release = Date.now() + hold * 1_000;
  const dueAt = (n: number) => release + (n / timers) * spread * 1_000;
  const seconds: Record<string, number> = {};
  const timed = async (what: string, work: () => Promise<unknown>) => {
    const from = Date.now();
    await work();
    seconds[what] = (Date.now() - from) / 1_000;
    say(`${what}: ${seconds[what].toFixed(1)} s`);
  };

  // The archive is down, and its `retry_after` makes the gatherings sleep until then.
  stack.archive.control.inject({ fault: { kind: "status", status: 503, retry_after: String(hold) } });
  const months = Array.from({ length: gatherings }, (_, n) => monthOf(n));
  await timed("starting gatherings", () =>
    inParallel(months, STARTERS, (month) => client.call("start_gathering", month, "start a gathering")),
  );
  const names = Array.from({ length: timers }, (_, n) => `t${n}`);
  await timed("setting timers", () =>
    inParallel(names, STARTERS, (timer_name, n) =>
      client.call("set_timer", { timer_name, seconds: (dueAt(n) - Date.now()) / 1_000 }, "set a timer"),
    ),
  );
  stack.archive.control.clear();
  if (Date.now() > release)
    throw new Error(`starting took longer than the ${hold} s until the first job ends: raise --hold`);

  const jobs = inOrderOfEnding(
    await Promise.all(names.map((timer_name) => timer.name({ timer_name, fires_at: "" }))),
    await Promise.all(months.map((month) => weather.name(month))),
  );
  const waiting = Array.from({ length: clients }, (_, k) => client.waitFor(jobs.filter((_, n) => n % clients === k)));
  await timed("probing", async () => {
    for (const [size, times] of Object.entries(PROBES)) {
      await inParallel(Array.from({ length: times }), PROBERS, (_, n) => {
        const job_names = Array.from({ length: Number(size) }, (_, i) => jobs[(n * 37 + i) % jobs.length]);
        return client.call("probe_status", { job_names }, `probe ${size} job${size === "1" ? "" : "s"}`);
      });
    }
  });
  await timed("waiting for the rest", () => Promise.all(waiting));

  const stored = [...(await storedJobs(stack)).values()];
  return {
    jobs: stored.length,
    complete: stored.filter(({ state }) => state === "resolved").length,
    mostInFlight: mostInFlight(stored),
    timersEarly: stored.filter(
      ({ func, args, settledAt = 0 }) => func === "timer" && settledAt < Date.parse(args.fires_at),
    ).length,
    latencies: { ...client.latencies, ...settlementToAnswer(client, stored), "timer late by": lateness(stored) },
    memory: await memory.stop(),
    seconds,
  };
}

/** A client of the edge that measures its calls. */
class Client {
  readonly latencies: Record<string, number[]> = {};
  readonly waits: { name: string; sent: number; answered: number }[] = [];
  readonly #url: string;

  constructor({ url }: Stack) {
    this.#url = url;
  }

  // oxlint-disable-next-line typescript/no-explicit-any -- structured content
  async call(name: string, args: object, what?: string): Promise<any> {
    const from = performance.now();
    const { result, error } = await rpc(this.#url, "tools/call", { name, arguments: args }, { capabilities: {} });
    if (what !== undefined) {
      this.latencies[what] ??= [];
      this.latencies[what].push(performance.now() - from);
    }
    if (error || result.isError) throw new Error(`${name}: ${error?.message ?? result.content[0].text}`);
    return result.structuredContent;
  }

  /** Waits for one job after another. @throws {Error} if a job does not complete */
  async waitFor(names: string[]): Promise<void> {
    for (const name of names) {
      const sent = Date.now();
      const { results } = await this.call("await_result", { job_names: [name], timeout_seconds: 300 });
      if (!(name in results)) throw new Error(`${name} did not complete`);
      this.waits.push({ name, sent, answered: Date.now() });
    }
  }
}

/** The delays of the waits that began before their job had ended. */
function settlementToAnswer({ waits }: Client, stored: Stored[]): Record<string, number[]> {
  const settledAt = new Map(stored.map((job) => [job.name, job.settledAt ?? 0]));
  const live = waits.filter(({ name, sent }) => sent < (settledAt.get(name) ?? 0));
  return { "settlement to answer": live.map(({ name, answered }) => answered - (settledAt.get(name) ?? 0)) };
}

function lateness(stored: Stored[]): number[] {
  const timers = stored.filter(({ func }) => func === "timer");
  return timers.map(({ args, settledAt = 0 }) => settledAt - Date.parse(args.fires_at));
}

function mostInFlight(stored: Stored[]): number {
  const changes = stored.flatMap(({ createdAt, settledAt = Number.POSITIVE_INFINITY }) => [
    { at: createdAt, by: 1 },
    { at: settledAt, by: -1 },
  ]);
  let [now, most] = [0, 0];
  for (const { by } of changes.sort((a, b) => a.at - b.at)) {
    now += by;
    most = Math.max(most, now);
  }
  return most;
}

/** Distinct coordinates and months that the sample archive covers. */
function monthOf(n: number) {
  const place = Math.floor(n / 48);
  return {
    latitude: Number((47.2 + (place % 80) / 100).toFixed(2)),
    longitude: Number((-122.3 + Math.floor(place / 80) / 100).toFixed(2)),
    year: 2012 + (Math.floor(n / 12) % 4),
    month: (n % 12) + 1,
  };
}

/** The names of both kinds of jobs, merged in the order of their ends: each kind ends evenly over the same time. */
function inOrderOfEnding(some: string[], others: string[]): string[] {
  const at = (list: string[]) => list.map((name, n) => ({ name, at: n / list.length }));
  return [...at(some), ...at(others)].sort((a, b) => a.at - b.at).map(({ name }) => name);
}

async function inParallel<T>(items: readonly T[], concurrency: number, work: (item: T, n: number) => Promise<unknown>) {
  await new PQueue({ concurrency }).addAll(items.map((item, n) => () => work(item, n)));
}

function pidsOf({ edge, workers, server }: Stack, resonatePid: number | undefined): Record<string, number> {
  const resonate = server?.process.pid ?? resonatePid;
  return {
    edge: edge.process.pid,
    ...Object.fromEntries(workers.map(({ process }, i) => [`worker ${i + 1}`, process.pid])),
    ...(resonate !== undefined && { Resonate: resonate }),
    "load and archive": process.pid,
  };
}
