import { DAY, HOUR, implement, NonRetryableError, SECOND, type Step } from "../../core/index.ts";
import { monthBounds } from "./calendar.ts";
import { type DailyWeather, type Month, month } from "./month.ts";
import { ArchiveEnv, archiveOf } from "./open-meteo.ts";

/** How much longer than its request the step may take, in seconds. */
const MARGIN = 5;

/** Gathers a month of daily weather with one request, whose answer is the job's result. */
export const gatherMonth = implement(
  month,
  async (ctx, asked) => {
    const { UPSTREAM_CONCURRENCY: limit, UPSTREAM_TIMEOUT_SECONDS: seconds } = ctx.env;
    const weather = await ctx.step("request", (step) => request(step, asked), {
      retry: { maxDuration: HOUR },
      concurrency: { name: "weather archive", limit },
      timeout: (seconds + MARGIN) * SECOND,
    });
    return asked.requested_on === undefined ? weather : partial(weather);
  },
  { env: ArchiveEnv },
);

async function request(step: Step<ArchiveEnv>, asked: Month): Promise<DailyWeather> {
  const weather = await archiveOf(step.env).daily(period(asked), step);
  refuseIncomplete(asked, weather);
  return weather;
}

/** The days to request: the whole month, or up to the day on which an unfinished month was asked for. */
function period({ latitude, longitude, year, month, timezone, requested_on }: Month) {
  const { first, last } = monthBounds(year, month);
  const end = requested_on !== undefined && requested_on < last ? requested_on : last;
  return { latitude, longitude, start_date: first, end_date: end, timezone: timezone ?? "auto" };
}

/** How long after its end a month without its last days counts as late, and not as a month with a gap. */
const LATE = 60 * DAY;

/**
 * Refuses a month that ended recently and whose last day is still empty, because a result is never refreshed. The archive
 * fills the day only after the job's deadline, so the job fails, and a later call starts it again. The gap of an old month is
 * permanent.
 */
function refuseIncomplete({ year, month, requested_on }: Month, weather: DailyWeather): void {
  const { last } = monthBounds(year, month);
  const complete = completeThrough(weather);
  if (requested_on !== undefined || complete === last || Date.now() - Date.parse(last) > LATE) return;
  throw new NonRetryableError(
    `the archive does not have the whole month yet, only up to ${complete ?? "no day"}; ask again later`,
  );
}

/** The last day with any value. */
function completeThrough({ daily }: DailyWeather): string | undefined {
  const series = [daily.temperature_2m_max, daily.temperature_2m_min, daily.precipitation_sum];
  return daily.time.findLast((_day, i) => series.some((values) => values[i] !== null));
}

function partial(weather: DailyWeather) {
  return {
    ...weather,
    partial: true,
    partial_reason: "the month was not over, or not yet whole in the archive, when it was asked for",
    complete_through: completeThrough(weather) ?? null,
  };
}
