import * as z from "zod";
import { DAY, defineJob, HOUR } from "./job.ts";

/** The first year the archive covers. */
export const FIRST_YEAR = 1940;

/**
 * How many days after a month's last day the archive is taken to have it whole: it runs about 5 days behind, and a
 * month ends up to half a day later west of Greenwich.
 */
const ARCHIVE_LAG_DAYS = 6;

/** Degrees north. */
export const Latitude = z.number().min(-90).max(90);
/** Degrees east. */
export const Longitude = z.number().min(-180).max(180);

/** A month of daily weather at a place. */
export const WeatherMonth = z.object({
  latitude: Latitude,
  longitude: Longitude,
  year: z.int().min(FIRST_YEAR).max(9999),
  /** 1 to 12. */
  month: z.int().min(1).max(12),
  /** An IANA time zone name; absent means the one at the coordinates. */
  timezone: z.string().optional(),
  /** The UTC day the month was asked for, present only when the archive cannot have the month whole yet. */
  requested_on: z.iso.date().optional(),
});
export type WeatherMonth = z.infer<typeof WeatherMonth>;

const NAME = /^weather_data_-?[0-9.e-]+_-?[0-9.e-]+_\d{4}_\d{1,2}(_[A-Za-z][\w+\-/]*)?(@\d{4}-\d{2}-\d{2})?$/;

export const weather = defineJob<WeatherMonth>({
  func: "weather_data",
  args: WeatherMonth,
  name: ({ year, month, ...where }) => `weather_data_${place(where)}_${year}_${month}${zoneAndDay(where)}`,
  owns: (name) => NAME.test(name),
  deadline: (_args, now) => now + HOUR,
  shared: true,
});

/** The part of a name that says where: `53.50` and `53.5` are one number, and `-0` is `0`. */
export function place({ latitude, longitude }: Pick<WeatherMonth, "latitude" | "longitude">): string {
  return `${latitude + 0}_${longitude + 0}`;
}

/** The part of a name that says by which days, and as of when. */
export function zoneAndDay({ timezone, requested_on }: Pick<WeatherMonth, "timezone" | "requested_on">): string {
  return (timezone === undefined ? "" : `_${timezone}`) + (requested_on === undefined ? "" : `@${requested_on}`);
}

/** The first and last day of a calendar month, `YYYY-MM-DD`. */
export function monthBounds(year: number, month: number): { first: string; last: string } {
  return { first: isoDate(Date.UTC(year, month - 1, 1)), last: isoDate(Date.UTC(year, month, 0)) };
}

/** How much of a month the archive can have at `now` (milliseconds since the epoch). */
export function monthAvailability(year: number, month: number, now: number): "none" | "part" | "whole" {
  const today = isoDate(now);
  const { first, last } = monthBounds(year, month);
  if (today < first) return "none";
  return today >= isoDate(Date.parse(last) + ARCHIVE_LAG_DAYS * DAY) ? "whole" : "part";
}

/** The UTC day of an instant, `YYYY-MM-DD`. */
export function isoDate(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
