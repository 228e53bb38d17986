import * as z from "zod";
import { DAY, defineJob } from "./job.ts";
import { Latitude, Longitude, monthAvailability, place, type WeatherMonth, zoneAndDay } from "./weather.ts";

/** The most months one range takes. */
export const MAX_MONTHS = 240;

/** A range of more months than this is confirmed by its caller before it is gathered. */
export const CONFIRM_ABOVE = 24;

export const YearMonth = z.string().regex(/^\d{4}-(0[1-9]|1[0-2])$/);

/** A span of months of daily weather at a place, both ends included. */
export const WeatherRange = z.object({
  latitude: Latitude,
  longitude: Longitude,
  /** `YYYY-MM`. */
  from: YearMonth,
  to: YearMonth,
  timezone: z.string().optional(),
  /** The UTC day it was asked for, present only when the archive cannot have its last months whole yet. */
  requested_on: z.iso.date().optional(),
  /** Whether the caller has confirmed a long range beforehand; not part of the name. */
  confirmed: z.boolean(),
});
export type WeatherRange = z.infer<typeof WeatherRange>;

const NAME =
  /^weather_range_-?[0-9.e-]+_-?[0-9.e-]+_\d{4}-\d{2}_\d{4}-\d{2}(_[A-Za-z][\w+\-/]*)?(@\d{4}-\d{2}-\d{2})?$/;

export const range = defineJob<WeatherRange>({
  func: "weather_range",
  args: WeatherRange,
  name: ({ from, to, ...where }) => `weather_range_${place(where)}_${from}_${to}${zoneAndDay(where)}`,
  owns: (name) => NAME.test(name),
  // Time for a person to answer; the months have deadlines of their own.
  deadline: (_args, now) => now + 14 * DAY,
  keepsJournal: true,
});

/** The months of a range, in order, each as the job of that month alone has it. */
export function monthsOf({ from, to, requested_on, latitude, longitude, timezone }: WeatherRange): WeatherMonth[] {
  const first = monthIndex(from);
  return Array.from({ length: monthIndex(to) - first + 1 }, (_, i) => {
    const [year, month] = [Math.floor((first + i) / 12), ((first + i) % 12) + 1];
    const part = requested_on !== undefined && monthAvailability(year, month, Date.parse(requested_on)) === "part";
    return { latitude, longitude, year, month, ...(timezone && { timezone }), ...(part && { requested_on }) };
  });
}

/** Months since the year 0. */
export function monthIndex(yearMonth: string): number {
  return Number(yearMonth.slice(0, 4)) * 12 + Number(yearMonth.slice(5)) - 1;
}
