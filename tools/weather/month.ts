/** A month of daily weather at a place: `start_gathering` starts the job, `weather_data` also waits for it. */
import * as z from "zod";
import {
  type ChartView,
  defineDurableTool,
  defineJob,
  HOUR,
  JobStatus,
  type ToolContext,
  ToolError,
} from "../../core/index.ts";
import { canonicalZone, isoDate, monthAvailability, monthBounds, today } from "./calendar.ts";

export const FIRST_YEAR = 1940;

const Month = z.object({
  latitude: z.number().min(-90).max(90),
  longitude: z.number().min(-180).max(180),
  year: z.int().min(FIRST_YEAR).max(9999),
  month: z.int().min(1).max(12),
  /** An IANA time zone name; absent: the zone at the coordinates. */
  timezone: z.string().optional(),
  /** The day of the request, present only while the archive cannot have the complete month. */
  requested_on: z.iso.date().optional(),
});
export type Month = z.infer<typeof Month>;

/** A value for each day; null if the archive has none. */
const DailyValues = z.array(z.number().nullable());

/** The archive's answer; its other fields are passed on. */
export const DailyWeather = z.looseObject({
  latitude: z.number(),
  longitude: z.number(),
  timezone: z.string(),
  daily_units: z.record(z.string(), z.string()),
  daily: z.looseObject({
    time: z.array(z.string()),
    temperature_2m_max: DailyValues,
    temperature_2m_min: DailyValues,
    precipitation_sum: DailyValues,
  }),
});
export type DailyWeather = z.infer<typeof DailyWeather>;

export const month = defineJob({
  kind: "weather_data",
  args: Month,
  result: DailyWeather,
  id: ({ year, month, ...place }) => `${placeId(place)}_${year}_${month}${zoneAndDay(place)}`,
  deadline: HOUR,
  shared: true,
  view: weatherChart(""),
});

/** Temperature as a band, rain as bars; `path` leads to the weather in a result. */
export function weatherChart(path: string): ChartView {
  return {
    as: "chart",
    x: `${path}daily.time`,
    series: [
      {
        as: "band",
        label: "Temperature",
        low: `${path}daily.temperature_2m_min`,
        high: `${path}daily.temperature_2m_max`,
        unit: `${path}daily_units.temperature_2m_max`,
      },
      {
        as: "bars",
        label: "Rain",
        values: `${path}daily.precipitation_sum`,
        unit: `${path}daily_units.precipitation_sum`,
      },
    ],
  };
}

/** The coordinates in a job name: `53.50` and `53.5` are one number, and `-0` is `0`. */
export function placeId({ latitude, longitude }: Pick<Month, "latitude" | "longitude">): string {
  return `${latitude + 0}_${longitude + 0}`;
}

/** The time zone and the day of the request in a job name. */
export function zoneAndDay({ timezone, requested_on }: Pick<Month, "timezone" | "requested_on">): string {
  return (timezone === undefined ? "" : `_${timezone}`) + (requested_on === undefined ? "" : `@${requested_on}`);
}

/** Rounds to four decimals, about ten meters, which is finer than the archive's grid. */
export const roundDegrees = (degrees: number): number => Math.round(degrees * 10_000) / 10_000 + 0;

/** The input fields of all weather tools. */
export const placeInput = {
  latitude: z.number().min(-90).max(90),
  longitude: z.number().min(-180).max(180),
  timezone: z
    .string()
    .transform((zone, context) => {
      const name = zone.trim();
      if (/^(auto)?$/i.test(name)) return undefined;
      const canonical = canonicalZone(name);
      if (canonical === undefined) context.addIssue("no such time zone is known; one is America/Edmonton");
      return canonical;
    })
    .optional()
    .describe("IANA; the place's by default."),
};

const MonthInput = z.object({
  latitude: placeInput.latitude,
  longitude: placeInput.longitude,
  // The upper bound of the archive depends on the day: see `monthToGather`.
  year: z
    .int()
    .min(FIRST_YEAR)
    .refine((year) => year <= 9999, "no calendar goes so far"),
  month: z.int().min(1).max(12),
  timezone: placeInput.timezone,
});

/** The tools only read an archive, so hosts may run several calls at once without asking the user. */
export const annotations = { readOnlyHint: true, idempotentHint: true, openWorldHint: true };

export const startGathering = defineDurableTool({
  job: month,
  name: "start_gathering",
  title: "Start gathering weather",
  description:
    "Start gathering a month of historical daily weather (highest and lowest temperature, precipitation) at a place. " +
    "Returns a job_name at once, for await_result.",
  input: MonthInput,
  annotations,
  args: monthToGather,
  output: z.object({
    job_name: z.string().describe("The name to collect the result by, from any session."),
    status: JobStatus,
    note: z.string().optional(),
  }),
  answer({ jobName, status, args, generation }) {
    const notes = [];
    if (generation > 1) {
      const base = jobName.slice(0, jobName.lastIndexOf("~"));
      notes.push(`Attempt ${generation}: an earlier attempt under ${base} finished without a result.`);
    }
    if (args.requested_on) {
      notes.push(
        `The archive cannot have the complete month yet, so the result will be partial, as of ${args.requested_on}.`,
      );
    }
    return { job_name: jobName, status, ...(notes.length > 0 && { note: notes.join(" ") }) };
  },
});

export const weatherData = defineDurableTool({
  job: month,
  name: "weather_data",
  title: "Weather of a month",
  description: "As start_gathering, but wait for the data; a longer job answers with its job_name.",
  input: MonthInput,
  annotations,
  args: monthToGather,
});

/** The stored arguments. @throws {ToolError} for a month that has not begun */
export function monthToGather(input: z.output<typeof MonthInput>, { now }: Pick<ToolContext, "now">): Month {
  const place = {
    latitude: roundDegrees(input.latitude),
    longitude: roundDegrees(input.longitude),
    timezone: input.timezone,
  };
  const { year, month } = input;
  const availability = monthAvailability(year, month, place, now);
  if (availability === "none") {
    const present = today(place, now).latest.slice(0, 7);
    throw new ToolError(
      `month: ${year}-${String(month).padStart(2, "0")} has not begun. Accepted: a month up to the present one, ${present}.`,
    );
  }
  return monthArgs({
    ...place,
    year,
    month,
    requested_on: availability === "partial" ? requestDay(place, year, month, now) : undefined,
  });
}

/** The day of a request for an incomplete month. Without a time zone it is the day in UTC, or the month's first day if later. */
export function requestDay(
  place: { longitude: number; timezone?: string | undefined },
  year: number,
  month: number,
  now: number,
): string {
  if (place.timezone !== undefined) return today(place, now).latest;
  const { first } = monthBounds(year, month);
  const day = isoDate(now);
  if (day < first) return first;
  return day;
}

/** Arguments without undefined fields, because they are stored. */
export function monthArgs({ timezone, requested_on, ...rest }: { [K in keyof Month]: Month[K] | undefined }): Month {
  return {
    ...rest,
    ...(timezone !== undefined && { timezone }),
    ...(requested_on !== undefined && { requested_on }),
  } as Month;
}
