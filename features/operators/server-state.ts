/** What the Resonate server reports about itself, and what the platform bills for it. */

import type { Charges, ServerState } from "../../core/jobs/index.ts";
import { endpointOf, MAX_OBJECT_BYTES, type ServerRules } from "../../core/resonate/index.ts";
import type { OperatorConfig } from "./options.ts";

/** How long the server may take to report, in milliseconds. */
const ANSWER_TIMEOUT_MS = 5_000;

/** The report of a server that comes with this package. An account's server counts since it woke. */
interface Usage {
  size: number;
  maxBytes?: number;
  requests?: number;
  alarms?: number;
  rows?: { read: number; written: number };
  awake?: number;
}

type About = Omit<ServerState, "ms" | "today" | "yesterday"> & { charges?: Charges };

/** Asks the server for its report. Rejects if it does not answer. */
export async function askServer(config: OperatorConfig, rules: ServerRules): Promise<About> {
  const { url, token, fetch: fetcher = fetch } = endpointOf(config);
  const headers = new Headers(token ? { authorization: `Bearer ${token}` } : {});
  const response = await fetcher(`${url}/usage`, { headers, signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
  if (!response.ok) {
    await response.body?.cancel();
    return { release: (await rules.armsTargetsOnly()) ? "0.10" : "0.9.8" };
  }
  const { size, maxBytes, requests, alarms = 0, rows, awake = 0 }: Usage = await response.json();
  if (requests === undefined || !rows)
    return { release: "embedded", size, ...(maxBytes !== undefined && { maxBytes }) };
  return {
    release: "account",
    size,
    maxBytes: MAX_OBJECT_BYTES,
    charges: { requests: requests + alarms, ...rows, awake },
  };
}

/** The sums of an account's server; `last` is its last report. */
export interface Charged {
  /** The beginning of the day, in milliseconds since the epoch. */
  day: number;
  today: Charges;
  yesterday?: Charges | undefined;
  last: Charges;
}

const DAY_MS = 86_400_000;
const NO_CHARGES: Charges = { requests: 0, read: 0, written: 0, awake: 0 };
const NAMES = Object.keys(NO_CHARGES) as (keyof Charges)[];

const each = (of: (name: keyof Charges) => number) =>
  Object.fromEntries(NAMES.map((name) => [name, of(name)])) as unknown as Charges;

/** Adds a server's report, which counts since it woke, to the sums. */
export function addCharges(known: Charged | undefined, reported: Charges, now: number): Charged {
  const day = now - (now % DAY_MS);
  const { last, ...days }: Charged = known ?? { day, today: NO_CHARGES, last: NO_CHARGES };
  // If the server has been awake for a shorter time than before, it slept in between, and its counts began again.
  const since = reported.awake < last.awake ? NO_CHARGES : last;
  const [today, yesterday] =
    days.day === day ? [days.today, days.yesterday] : [NO_CHARGES, days.day === day - DAY_MS ? days.today : undefined];
  return { day, today: each((name) => today[name] + reported[name] - since[name]), yesterday, last: reported };
}
