import { DAY, HOUR, implement, NonRetryableError, SECOND, type Step } from "../../core/index.ts";
import { monthBounds } from "./calendar.ts";
import { type DailyWeather, type Month, month } from "./month.ts";
import { ArchiveEnv, archiveOf } from "./open-meteo.ts";

/** How much longer than its request the step may take. */
const STEP_MARGIN_SECONDS = 5;

/** Gathers a month of daily weather with one request, whose answer is the job's result. */
export const gatherMonth = implement(
  month,
  async (ctx, args) => {
    const { UPSTREAM_CONCURRENCY: limit, UPSTREAM_TIMEOUT_SECONDS: seconds } = ctx.env;
    const weather = await ctx.step("request", (step) => request(step, args), {
      retry: { maxDuration: HOUR },
      concurrency: { name: "weather archive", limit },
      timeout: (seconds + STEP_MARGIN_SECONDS) * SECOND,
    });
    return args.requested_on === undefined ? weather : asPartial(weather);
  },
  { env: ArchiveEnv },
);

async function request(step: Step<ArchiveEnv>, args: Month): Promise<DailyWeather> {
  const weather = await archiveOf(step.env).daily(period(args), step);
  refuseIncomplete(args, weather);
  return weather;
}

/** The days to request: the whole month, or up to the day on which an unfinished month was requested. */
function period({ latitude, longitude, year, month, timezone, requested_on }: Month) {
  const { first, last } = monthBounds(year, month);
  const end = requested_on !== undefined && requested_on < last ? requested_on : last;
  return { latitude, longitude, start_date: first, end_date: end, timezone: timezone ?? "auto" };
}

/** How long after its end a month without its last days counts as late, and not as a month with a gap. */
const MAX_DELAY_MS = 60 * DAY;

/**
 * Refuses a month that ended recently and whose last day is still empty, because a result is never refreshed. The archive
 * fills the day only after the job's deadline, so the job fails, and a later call starts it again. The gap of an old month is
 * permanent.
 */
function refuseIncomplete({ year, month, requested_on }: Month, weather: DailyWeather): void {
  const { last } = monthBounds(year, month);
  const lastDay = completeThrough(weather);
  if (requested_on !== undefined || lastDay === last || Date.now() - Date.parse(last) > MAX_DELAY_MS) return;
  throw new NonRetryableError(
    `the archive does not have the complete month yet, only up to ${lastDay ?? "no day"}; ask again later`,
  );
}

/** The last day with any value. */
function completeThrough({ daily }: DailyWeather): string | undefined {
  const series = [daily.temperature_2m_max, daily.temperature_2m_min, daily.precipitation_sum];
  return daily.time.findLast((_day, i) => series.some((values) => values[i] !== null));
}

/** Marks the weather of a month that the archive could not have complete. */
function asPartial(weather: DailyWeather) {
  return {
    ...weather,
    partial: true,
    partial_reason: "the month was not over, or not yet complete in the archive, when it was requested",
    complete_through: completeThrough(weather) ?? null,
  };
}
