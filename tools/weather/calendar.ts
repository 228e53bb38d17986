/** Months, days and time zones at a place. */
import { DAY, HOUR } from "../../core/index.ts";

/** How many days after its last day a month counts as complete in the archive, which is about 5 days behind. */
const ARCHIVE_LAG_DAYS = 6;

interface Coordinates {
  /** Degrees east. */
  longitude: number;
  /** An IANA time zone name; absent: the zone at the coordinates. */
  timezone?: string | undefined;
}

/** The first and last day of a calendar month, `YYYY-MM-DD`. */
export function monthBounds(year: number, month: number): { first: string; last: string } {
  return { first: isoDate(Date.UTC(year, month - 1, 1)), last: isoDate(Date.UTC(year, month, 0)) };
}

/** How much of a month the archive can have at `now` (milliseconds since the epoch), by the calendar of the place. */
export function monthAvailability(
  year: number,
  month: number,
  place: Coordinates,
  now: number,
): "none" | "partial" | "complete" {
  const { earliest, latest } = today(place, now);
  if (latest < monthBounds(year, month).first) return "none";
  return isComplete(year, month, earliest) ? "complete" : "partial";
}

/** Whether the archive has the complete month on this day (`YYYY-MM-DD`) at the place. */
export function isComplete(year: number, month: number, day: string): boolean {
  return day >= isoDate(Date.parse(monthBounds(year, month).last) + ARCHIVE_LAG_DAYS * DAY);
}

/** The day at the place, `YYYY-MM-DD`; a range of days if only the coordinates are known. */
export function today({ longitude, timezone }: Coordinates, now: number): { earliest: string; latest: string } {
  if (timezone !== undefined) {
    const day = new Intl.DateTimeFormat("en-CA", { timeZone: timezone, dateStyle: "short" }).format(now);
    return { earliest: day, latest: day };
  }
  // A zone is up to 4 hours off solar time; some islands just east of the date line use the date west of it.
  const solarOffset = longitude / 15;
  const latestOffset = longitude < -140 ? 14 : Math.min(solarOffset + 4, 14);
  const earliestOffset = Math.max(solarOffset - 4, -12);
  return { earliest: isoDate(now + earliestOffset * HOUR), latest: isoDate(now + latestOffset * HOUR) };
}

/** The day of an instant in UTC, `YYYY-MM-DD`. */
export function isoDate(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** The newest name of a zone, in its canonical spelling; undefined for an unknown zone. */
export function canonicalZone(zone: string): string | undefined {
  // Excludes offsets such as `+05:00`, which Intl accepts.
  if (!/^[A-Za-z][\w+\-/]{0,63}$/.test(zone)) return undefined;
  try {
    const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions();
    return RENAMED_ZONES[timeZone] ?? timeZone;
  } catch {
    return undefined;
  }
}

/** Renamed zones that ICU resolves to their old or new names, depending on its version: job names must not depend on that. */
const RENAMED_ZONES: Readonly<Record<string, string>> = {
  "Africa/Asmera": "Africa/Asmara",
  "America/Buenos_Aires": "America/Argentina/Buenos_Aires",
  "America/Catamarca": "America/Argentina/Catamarca",
  "America/Coral_Harbour": "America/Atikokan",
  "America/Cordoba": "America/Argentina/Cordoba",
  "America/Godthab": "America/Nuuk",
  "America/Indianapolis": "America/Indiana/Indianapolis",
  "America/Jujuy": "America/Argentina/Jujuy",
  "America/Louisville": "America/Kentucky/Louisville",
  "America/Mendoza": "America/Argentina/Mendoza",
  "Asia/Calcutta": "Asia/Kolkata",
  "Asia/Katmandu": "Asia/Kathmandu",
  "Asia/Rangoon": "Asia/Yangon",
  "Asia/Saigon": "Asia/Ho_Chi_Minh",
  "Atlantic/Faeroe": "Atlantic/Faroe",
  "Europe/Kiev": "Europe/Kyiv",
  "Pacific/Enderbury": "Pacific/Kanton",
  "Pacific/Ponape": "Pacific/Pohnpei",
  "Pacific/Truk": "Pacific/Chuuk",
};
