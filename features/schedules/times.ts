/** When schedules fire. */
import { CronExpressionParser } from "cron-parser";
import { problemInForm } from "./form.ts";
import { MAX_DURATION_MS, type When } from "./schedule.ts";

/** The most that clocks are changed by at once. */
const MAX_CLOCK_CHANGE_MS = 2 * 3_600_000;

const DAY_MS = 86_400_000;

/** The first firing after a time; undefined without one. Times are in milliseconds since the epoch. */
export function nextAfter(when: When, after: number): number | undefined {
  const { cron, at = "", timezone, every, from = 0 } = when;
  if (cron !== undefined) return firings(when, after).next().value;
  if (every !== undefined) {
    const step = every * 1_000;
    return from + Math.max(1, Math.floor((after - from) / step) + 1) * step;
  }
  const once = instantOf(at, timezone);
  return once > after ? once : undefined;
}

/**
 * The instant of an `at`: with an offset, or a local time of a zone. One that the clocks skip is as much later as they are set
 * forward, and one that comes twice is the first.
 */
function instantOf(at: string, timezone: string | undefined): number {
  if (timezone === undefined) return Date.parse(at);
  const local = Date.parse(`${at}Z`);
  const [first = Number.NaN, second = Number.NaN] = [-DAY_MS, DAY_MS].map(
    (away) => local - offsetAt(local + away, timezone),
  );
  const isSecond = first + offsetAt(first, timezone) !== local && second + offsetAt(second, timezone) === local;
  return isSecond ? second : first;
}

/** How far a zone's clocks are ahead of UTC, in milliseconds. */
function offsetAt(time: number, timezone: string | undefined): number {
  const found = expression({ cron: "* * * * * *", timezone }, time - 1_000).next();
  return found.getUTCOffset() * 60_000;
}

/** The last firing after `after` and not after `until`; undefined without one. */
export function lastBetween(when: When, after: number, until: number): number | undefined {
  const { cron, at = "", timezone, every, from = 0 } = when;
  // Looks ahead in growing spans: looking back, the library finds other firings where clocks change.
  for (let span = MAX_CLOCK_CHANGE_MS; cron !== undefined; span *= 2) {
    const begin = Math.max(after, until - span);
    let found: number | undefined;
    for (const time of firings(when, begin)) {
      if (time > until) break;
      found = time;
    }
    if (found !== undefined || begin === after) return found;
  }
  const step = (every ?? 0) * 1_000;
  const last = every !== undefined ? from + Math.floor((until - from) / step) * step : instantOf(at, timezone);
  return last > after && last <= until && last > from ? last : undefined;
}

/**
 * The firings of a cron schedule after a time. The library must pass a change of the clocks on its way to know which hour is
 * skipped or repeated, so it begins before a change that has just been.
 */
function* firings(when: When, after: number): Generator<number, never> {
  const before = after - MAX_CLOCK_CHANGE_MS;
  const isChanged = offsetAt(before, when.timezone) !== offsetAt(after, when.timezone);
  const found = expression(when, isChanged ? before : after);
  for (;;) {
    const time = found.next().getTime();
    if (time > after) yield time;
  }
}

function expression({ cron = "", timezone: tz = "UTC" }: When, currentDate: number) {
  return CronExpressionParser.parse(cron, { currentDate, tz });
}

/** What is wrong with a time, in words; undefined if nothing is. `isDefined`: it is a definition's, whose `at` may be past. */
export function problemIn(when: When, now: number, isDefined = false): string | undefined {
  const { cron, at } = when;
  const problem = problemInForm(when);
  if (problem !== undefined) return problem;
  try {
    const next = nextAfter(when, now);
    if (next === undefined && !isDefined) return "at: must be a time to come";
    return next !== undefined && next > now + MAX_DURATION_MS
      ? `${cron !== undefined ? "cron" : at !== undefined ? "at" : "every"}: must fire within ten years, which a schedule lasts`
      : undefined;
  } catch (error) {
    return `cron: ${(error as Error).message}`;
  }
}

/** A time as part of a job's name. */
export const stamp = (time: number): string => `${new Date(time).toISOString().slice(0, 19).replace(/[-:]/g, "")}Z`;
