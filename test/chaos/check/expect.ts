/** The expected outcome of each job, computed without the product, from the archive's data and the arguments. */
import { isDeepStrictEqual } from "node:util";
import { splitGeneration } from "../../../core/resonate/ids.ts";
import { monthBounds } from "../../../tools/weather/calendar.ts";
import { monthsOf } from "../../../tools/weather/range.ts";
import { answerRequest } from "../../../tools/weather/sample-archive/archive.ts";
import type { Stored } from "../../support/stored.ts";
import type { Wanted } from "../client-log.ts";
import { monthName } from "../names.ts";
import type { Month } from "../plan.ts";

const DAILY = "temperature_2m_max,temperature_2m_min,precipitation_sum";

/** The answers to a range's question that end the range without months. */
const DECLINING: ReadonlySet<string> = new Set(["accept_no", "decline", "cancel"]);

/** A gathering may give up after this many unusable answers. */
const MAX_UNUSABLE = 4;

/** The key that identifies the archive requests of one gathering. */
export function monthKey({ latitude, longitude, year, month, timezone = "auto" }: Month): string {
  return [latitude, longitude, monthBounds(year, month).first, timezone].join(" ");
}

/** The same key from an archive request's query string. */
export function queryKey(query: string): string {
  const asked = new URLSearchParams(query);
  return ["latitude", "longitude", "start_date", "timezone"].map((name) => asked.get(name)).join(" ");
}

/** What is wrong with a job's outcome; undefined if nothing is. `jobs` are all stored jobs. */
export function wrongWith(
  job: Stored,
  wanted: Wanted | undefined,
  { jobs, unusable }: { jobs: ReadonlyMap<string, Stored>; unusable: ReadonlyMap<string, number> },
): string | undefined {
  if (job.state === "rejected_timedout") return "it was timed out";
  if (job.state === "rejected_canceled") return mayBeCancelled(wanted) ? undefined : "nobody cancelled it";
  switch (job.func) {
    case "weather_data":
      return wrongMonth(job, unusable.get(monthKey(job.args)) ?? 0);
    case "timer":
      return job.value === "complete" ? undefined : `it came to ${JSON.stringify(job.value)}`;
    default:
      return wrongRange(job, wanted, jobs);
  }
}

function mayBeCancelled(wanted: Wanted | undefined): boolean {
  return wanted?.cancel !== undefined || wanted?.replies.has("cancel_task") === true;
}

function wrongMonth({ args, state, value }: Stored, unusable: number): string | undefined {
  const expected = expectedMonth(args);
  if (state === "resolved") return isDeepStrictEqual(value, expected) ? undefined : "not the weather of that month";
  const reason = value instanceof Error ? value.message : String(value);
  if (expected instanceof Error) {
    return reason === `Open-Meteo answered 400: ${expected.message}`
      ? undefined
      : `failed for another reason: ${reason}`;
  }
  return unusable >= MAX_UNUSABLE && reason.startsWith("gave up") ? undefined : `failed: ${reason}`;
}

/** The archive's answer, or the reason why it has none. */
function expectedMonth({ latitude, longitude, year, month, timezone = "auto" }: Month): unknown {
  const { first, last } = monthBounds(year, month);
  const query = { latitude, longitude, start_date: first, end_date: last, timezone, daily: DAILY };
  try {
    return answerRequest(new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)])));
  } catch (error) {
    return error;
  }
}

function wrongRange({ args, state, value }: Stored, wanted: Wanted | undefined, jobs: ReadonlyMap<string, Stored>) {
  const replies = [...(wanted?.replies ?? [])];
  if (state === "rejected") {
    const reason = value instanceof Error ? value.message : String(value);
    const declined = reason.startsWith("declined") && replies.some((reply) => DECLINING.has(reply));
    return declined ? undefined : `failed: ${reason}`;
  }
  if (wanted?.planned.kind === "question" && !replies.includes("accept")) return "nobody accepted it";
  const gathered = (value as { months?: GatheredMonth[] }).months ?? [];
  const months = monthsOf(args);
  if (gathered.length !== months.length) return `${gathered.length} months instead of ${months.length}`;
  return months.map((month, i) => wrongPart(month, gathered[i] as GatheredMonth, jobs)).find(Boolean);
}

interface GatheredMonth {
  job_name: string;
  weather?: unknown;
  error?: string;
}

function wrongPart(
  month: Month,
  { job_name, weather: gathered, error }: GatheredMonth,
  jobs: ReadonlyMap<string, Stored>,
) {
  if (splitGeneration(job_name).base !== monthName(month)) return `${job_name} in place of ${monthName(month)}`;
  if (error !== undefined)
    return jobs.get(job_name)?.state === "rejected" ? undefined : `${job_name} did not fail: ${error}`;
  return isDeepStrictEqual(gathered, expectedMonth(month)) ? undefined : `not the weather of ${job_name}`;
}
