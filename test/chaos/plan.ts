/** The plan of a chaos run, derived from a seed: the jobs of the clients, and the faults. */
import type { Fault as UpstreamFault } from "../../tools/weather/sample-archive/faults.ts";
import { Random } from "../support/random.ts";

export interface Plan {
  seed: number;
  /** How long jobs are started and faults are injected, in milliseconds. */
  duration: number;
  jobs: PlannedJob[];
  faults: PlannedFault[];
}

/** Milliseconds since the start of the run. */
interface At {
  at: number;
}

/** The reply to a question: an answer, or a cancellation of the task. */
export const REPLIES = ["accept", "accept_no", "decline", "cancel", "cancel_task"] as const;
export type Reply = (typeof REPLIES)[number];

export type PlannedJob = At &
  (
    | { kind: "gathering"; args: Month; starters: number; cancelAfter?: number }
    /** A month that the archive does not have; it is started again after it has failed. */
    | { kind: "refused"; args: Month }
    | { kind: "timer"; args: { timer_name: string; seconds: number }; starters: number; cancelAfter?: number }
    | { kind: "range"; args: Range & { confirm?: boolean } }
    /** A range that asks its caller first. With a rival, two clients answer at once. */
    | { kind: "question"; args: Range; reply: Reply; rival?: Reply; after: number }
  );

export interface Month {
  latitude: number;
  longitude: number;
  year: number;
  month: number;
  timezone?: string | undefined;
}

export interface Range {
  latitude: number;
  longitude: number;
  from: string;
  to: string;
}

export type Target = "edge" | "worker" | "resonate" | "everything";

/** `ms`: how long a process is down; `index`: which worker. */
export type PlannedFault = At &
  (
    | { target: Target; index: number; how: "SIGKILL" | "SIGTERM" | "SIGSTOP"; ms: number }
    | { target: "upstream"; fault: UpstreamFault; times: number }
  );

export interface PlanOptions {
  seed: number;
  seconds: number;
  workers: number;
  /** The workers' lease in milliseconds. Some pauses are longer. */
  lease: number;
}

/** Jobs started per second, by kind. */
const RATES = { gathering: 8, refused: 0.4, timer: 20, range: 0.8, question: 1 };

export function makePlan({ seed, seconds, workers, lease }: PlanOptions): Plan {
  const random = new Random(seed);
  const duration = seconds * 1_000;
  const jobs = (Object.keys(RATES) as PlannedJob["kind"][]).flatMap((kind) =>
    Array.from({ length: Math.max(1, Math.round(RATES[kind] * seconds)) }, (_, n) => job(kind, n, random, duration)),
  );
  return {
    seed,
    duration,
    jobs: jobs.sort((a, b) => a.at - b.at),
    faults: planFaults(random, { duration, workers, lease }),
  };
}

function job(kind: PlannedJob["kind"], n: number, random: Random, duration: number): PlannedJob {
  const at = random.int(0, duration);
  const starters = random.chance(30) ? 2 : 1;
  const cancel = random.chance(12) ? { cancelAfter: random.int(0, 1_500) } : {};
  switch (kind) {
    case "gathering": {
      const args = { ...("cancelAfter" in cancel ? place(0.3, n) : place(0.1, random.int(0, 9))), ...month(random) };
      const timezone = random.chance(20) ? { timezone: random.pick(["Asia/Tokyo", "UTC", "America/New_York"]) } : {};
      return { kind, at, starters, args: { ...args, ...timezone }, ...cancel };
    }
    case "refused":
      return { kind, at, args: { ...place(0.2, n), year: 1999, month: random.int(1, 12) } };
    case "timer": {
      const left = Math.ceil((duration - at) / 1_000);
      return { kind, at, starters, args: { timer_name: `t${n}`, seconds: random.int(1, left + 3) }, ...cancel };
    }
    case "range": {
      const length = random.int(2, 6);
      return { kind, at, args: { ...place(0.1, random.int(0, 9)), ...span(random, length) } };
    }
    case "question": {
      const rival = random.chance(20) ? { rival: random.pick(REPLIES) } : {};
      const args = { ...place(-0.1, n), ...span(random, random.int(25, 27)) };
      return { kind, at, args, reply: random.pick([...REPLIES, "accept"]), ...rival, after: random.int(0, 3_000) };
    }
  }
}

/** Coordinates within the sample archive's grid cell; `band` separates jobs that must differ. */
function place(band: number, n: number) {
  return { latitude: round(47.6062 + band + (n % 9) / 100), longitude: round(-122.3321 + Math.floor(n / 9) / 1_000) };
}

const round = (degrees: number) => Number(degrees.toFixed(4));

function month(random: Random) {
  return { year: random.int(2012, 2015), month: random.int(1, 12) };
}

function span(random: Random, months: number): { from: string; to: string } {
  const first = 2012 * 12 + random.int(0, 48 - months);
  return { from: yearMonth(first), to: yearMonth(first + months - 1) };
}

function yearMonth(index: number): string {
  return `${Math.floor(index / 12)}-${String((index % 12) + 1).padStart(2, "0")}`;
}

const WEIGHTS = { upstream: 35, worker: 30, resonate: 15, edge: 15, everything: 5 };

function planFaults(
  random: Random,
  { duration, workers, lease }: { duration: number; workers: number; lease: number },
): PlannedFault[] {
  const faults: PlannedFault[] = [];
  const processes = ["edge", "resonate", ...Array.from({ length: workers }, (_, i) => `worker${i}`)];
  /** When each process works again. */
  const busyUntil = new Map(processes.map((name) => [name, 0]));
  for (let at = random.int(500, 1_500); at < duration; at += random.int(150, 1_000)) {
    const target = random.weighted(WEIGHTS);
    if (target === "upstream") {
      faults.push({ at, target, fault: upstreamFault(random), times: random.int(1, 12) });
      continue;
    }
    const index = random.int(0, workers - 1);
    const how = random.pick(["SIGKILL", "SIGTERM", "SIGSTOP"] as const);
    const outlast = how === "SIGSTOP" && target === "worker" && random.chance(25) ? lease + 1_000 : 0;
    const ms = outlast + random.int(100, 2_000);
    const hit = target === "everything" ? processes : [target === "worker" ? `worker${index}` : target];
    if (hit.some((name) => (busyUntil.get(name) ?? 0) > at)) continue;
    for (const name of hit) busyUntil.set(name, at + ms + 1_500);
    faults.push({ at, target, index, how, ms });
  }
  return faults;
}

function upstreamFault(random: Random): UpstreamFault {
  switch (random.pick(["slow", "hang", "half", "refuse", "busy", "error", "html", "shape"] as const)) {
    case "slow":
      return { kind: "slow", ms: random.int(100, 1_500) };
    case "hang":
      return { kind: "hang", after: "nothing" };
    case "half":
      return { kind: "hang", after: "headers" };
    case "refuse":
      return { kind: "refuse" };
    case "busy":
      return { kind: "status", status: 429, retry_after: String(random.int(0, 2)) };
    case "error":
      return { kind: "status", status: random.pick([500, 502, 503, 504]) };
    case "html":
      return { kind: "rubbish", body: "html" };
    case "shape":
      return { kind: "rubbish", body: "truncated" };
  }
}
