/** When schedules fire. */
import { CronExpressionParser } from "cron-parser";
import { MIN_INTERVAL_SECONDS } from "./min-interval.ts";
import type { When } from "./schedule.ts";

/** The most that clocks are changed by at once. */
const MAX_CLOCK_CHANGE_MS = 2 * 3_600_000;

/** The first firing after a time; undefined without one. Times are in milliseconds since the epoch. */
export function nextAfter(when: When, after: number): number | undefined {
  const { cron, at, every, from = 0 } = when;
  if (cron !== undefined) return firings(when, after).next().value;
  if (every !== undefined) {
    const step = every * 1_000;
    return from + Math.max(1, Math.floor((after - from) / step) + 1) * step;
  }
  const once = Date.parse(at ?? "");
  return once > after ? once : undefined;
}

/** The last firing after `after` and not after `until`; undefined without one. */
export function lastBetween(when: When, after: number, until: number): number | undefined {
  const { cron, at, every, from = 0 } = when;
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
  const last = every !== undefined ? from + Math.floor((until - from) / step) * step : Date.parse(at ?? "");
  return last > after && last <= until && last > from ? last : undefined;
}

/**
 * The firings of a cron schedule after a time. The library must pass a change of the clocks on its way to know which hour is
 * skipped or repeated, so it begins before a change that has just been.
 */
function* firings(when: When, after: number): Generator<number, never> {
  const offset = (time: number) =>
    expression({ ...when, cron: "* * * * * *" }, time)
      .next()
      .getUTCOffset();
  const found = expression(
    when,
    offset(after - MAX_CLOCK_CHANGE_MS) === offset(after) ? after : after - MAX_CLOCK_CHANGE_MS,
  );
  for (;;) {
    const time = found.next().getTime();
    if (time > after) yield time;
  }
}

function expression({ cron = "", timezone: tz = "UTC" }: When, currentDate: number) {
  return CronExpressionParser.parse(cron, { currentDate, tz });
}

/** What is wrong with a time, in words; undefined where nothing is. */
export function problemIn({ cron, timezone, every, at }: When, now: number): string | undefined {
  if ([cron, every, at].filter((one) => one !== undefined).length !== 1) return "give one of cron, every and at";
  if (timezone !== undefined && cron === undefined) return "timezone: it belongs to cron";
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone ?? "UTC" });
  } catch {
    return `timezone: ${JSON.stringify(timezone)} is unknown. Accepted: an IANA name such as Europe/Zurich`;
  }
  if (every !== undefined && !(every >= MIN_INTERVAL_SECONDS))
    return `every: must be ${MIN_INTERVAL_SECONDS} seconds or more`;
  if (at !== undefined && !(Date.parse(at) > now)) return "at: must be a time to come, ISO 8601 with its time zone";
  if (cron === undefined) return undefined;
  if (cron.trim().split(/\s+/).length !== 5)
    return "cron: must have five fields: minute, hour, day of the month, month, day of the week";
  try {
    nextAfter({ cron, timezone }, now);
    return undefined;
  } catch (error) {
    return `cron: ${(error as Error).message}`;
  }
}

/** A time as part of a job's name. */
export const stamp = (time: number): string => `${new Date(time).toISOString().slice(0, 19).replace(/[-:]/g, "")}Z`;
