import type { Context } from "@resonatehq/sdk/async";
import { DAY, monthBounds, type WeatherMonth, weather } from "../../functions/jobs/index.ts";
import type { Logger } from "../logger.ts";
import { retries } from "../metrics.ts";
import { type DailyWeather, type OpenMeteo, UpstreamError } from "../open-meteo.ts";
import type { JobFunction } from "./durable.ts";
import { nextStep, type Retry } from "./retry.ts";

/** How one request for the month ended: with the weather, with a wait before the next request, or for good. */
type Attempt = { weather: DailyWeather } | Retry | { failure: string };

/**
 * Gathers a month of daily weather. Each request is a step that is kept once it has ended, and the wait after a failed
 * one is a durable sleep: a crash repeats no request that was answered, and a job that waits holds no worker.
 */
export function gatherMonth(archive: OpenMeteo): JobFunction<WeatherMonth> {
  return async function weather_data(ctx: Context, month: WeatherMonth, log: Logger) {
    let invalid = 0;
    for (let attempt = 1; ; attempt++) {
      const outcome: Attempt = await ctx.run(async function request(): Promise<Attempt> {
        try {
          const daily = await archive.daily(period(month), ctx.timeoutAt);
          return missingDays(month, daily) ?? { weather: daily };
        } catch (error) {
          if (!(error instanceof UpstreamError)) throw error;
          const step = nextStep(error, { attempt, invalid, timeLeft: ctx.timeoutAt - Date.now() });
          if ("retry_in_ms" in step) {
            log.warn({ attempt, ...step }, "attempt failed");
            retries.inc({ job: weather.func });
          }
          return step;
        }
      });
      if ("weather" in outcome) return month.requested_on ? partial(outcome.weather) : outcome.weather;
      if ("failure" in outcome) throw new Error(outcome.failure);
      if (outcome.invalid) invalid++;
      await ctx.sleep(outcome.retry_in_ms);
    }
  };
}

/** What to ask the archive for; of a month that is not over, the days up to the one it was asked for on. */
function period({ latitude, longitude, year, month, timezone, requested_on }: WeatherMonth) {
  const { first, last } = monthBounds(year, month);
  const end = requested_on !== undefined && requested_on < last ? requested_on : last;
  return { latitude, longitude, start_date: first, end_date: end, timezone: timezone ?? "auto" };
}

/** How long after its end a month without its last days is taken to be late rather than to have a gap. */
const LATE = 60 * DAY;

/**
 * A result is kept for ever, so a month that ended lately and whose last day is still empty must not become one. The
 * archive fills it in days, long after the job's deadline, so waiting would be in vain: the job fails, and asking again
 * later starts it anew. An old month without its last day has a gap that stays, and is a result like any other.
 */
function missingDays({ year, month, requested_on }: WeatherMonth, weather: DailyWeather) {
  const { last } = monthBounds(year, month);
  const complete = completeThrough(weather);
  if (requested_on !== undefined || complete === last || Date.now() - Date.parse(last) > LATE) return undefined;
  return {
    failure: `the archive does not have the whole month yet, only up to ${complete ?? "no day"}; ask again later`,
  };
}

/** The last day that has any value. */
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
