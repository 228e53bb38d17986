import { readFileSync } from "node:fs";
import { csvParse } from "d3-dsv";

/** The only station, and the greatest distance of a request from it. */
const SEATTLE = { latitude: 47.6062, longitude: -122.3321, elevation: 59, timezone: "America/Los_Angeles" };
const MAX_DISTANCE_DEGREES = 0.5;

/** The columns of the data set, and the units of its series. */
const VARIABLES: Record<string, { column: "temp_max" | "temp_min" | "precipitation"; unit: string }> = {
  temperature_2m_max: { column: "temp_max", unit: "°C" },
  temperature_2m_min: { column: "temp_min", unit: "°C" },
  precipitation_sum: { column: "precipitation", unit: "mm" },
};

// Observations of NOAA, in the public domain, taken from the npm package vega-datasets (3.2.1).
const csv = readFileSync(new URL("./seattle-weather.csv", import.meta.url), "utf8");
const days = csvParse<"date" | "temp_max" | "temp_min" | "precipitation">(csv);
const FIRST_DAY = days[0]?.date ?? "";
const LAST_DAY = days.at(-1)?.date ?? "";

/** A refusal with Open-Meteo's wording. */
export class BadRequest extends Error {}

/**
 * Answers an Open-Meteo archive query (`latitude`, `longitude`, `start_date`, `end_date`, `daily`, `timezone`) from the bundled
 * data. Equal queries get equal answers.
 *
 * @throws {BadRequest} if Open-Meteo would answer 400
 */
export function answerRequest(query: URLSearchParams) {
  checkPlace(query);
  const { start, end } = period(query);
  const names = (query.get("daily") ?? "").split(",").filter((name) => name !== "");
  const zone = timezone(query.get("timezone") ?? "GMT", start);
  const rows = days.filter(({ date }) => date >= start && date <= end);
  const units: Record<string, string> = { time: "iso8601" };
  const daily: Record<string, (string | number)[]> = { time: rows.map(({ date }) => date) };
  for (const name of names) {
    const variable = VARIABLES[name];
    if (!variable) throw new BadRequest(`Cannot initialize daily variable from invalid String value ${name}.`);
    units[name] = variable.unit;
    daily[name] = rows.map((row) => Number(row[variable.column]));
  }
  return {
    latitude: SEATTLE.latitude,
    longitude: SEATTLE.longitude,
    generationtime_ms: 0.05, // a constant keeps answers equal byte for byte
    ...zone,
    elevation: SEATTLE.elevation,
    daily_units: units,
    daily,
  };
}

function checkPlace(query: URLSearchParams): void {
  const latitude = coordinate(query, "latitude", 90);
  const longitude = coordinate(query, "longitude", 180);
  if (
    Math.abs(latitude - SEATTLE.latitude) > MAX_DISTANCE_DEGREES ||
    Math.abs(longitude - SEATTLE.longitude) > MAX_DISTANCE_DEGREES
  ) {
    throw new BadRequest("No data is available for this location");
  }
}

function coordinate(query: URLSearchParams, name: "latitude" | "longitude", limit: number): number {
  const text = query.get(name);
  const value = Number(text);
  if (!text || Number.isNaN(value)) throw new BadRequest(`Parameter '${name}' must be a number`);
  if (Math.abs(value) > limit) {
    const label = name === "latitude" ? "Latitude" : "Longitude";
    throw new BadRequest(`${label} must be in range of -${limit} to ${limit}°. Given: ${value}.`);
  }
  return value;
}

function period(query: URLSearchParams): { start: string; end: string } {
  const start = query.get("start_date");
  const end = query.get("end_date");
  if (!start || !end) throw new BadRequest("Both 'start_date' and 'end_date' must be set");
  for (const [name, day] of [
    ["start_date", start],
    ["end_date", end],
  ]) {
    if (!isDay(day)) throw new BadRequest("Invalid date format. Make sure to use 'YYYY-MM-DD'");
    if (day < FIRST_DAY || day > LAST_DAY) {
      throw new BadRequest(`Parameter '${name}' is out of allowed range from ${FIRST_DAY} to ${LAST_DAY}`);
    }
  }
  if (end < start) throw new BadRequest("End-date must be larger or equals than start-date");
  return { start, end };
}

function isDay(text: string | undefined): text is string {
  if (!text || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const time = Date.parse(text);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/** The time zone in an answer, as of the first day. */
function timezone(name: string, day: string) {
  const timeZone = name === "auto" ? SEATTLE.timezone : name;
  const zoneName = (style: "longOffset" | "short") =>
    new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: style })
      .formatToParts(Date.parse(`${day}T12:00:00Z`))
      .find(({ type }) => type === "timeZoneName")?.value ?? "";
  try {
    const [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)/.exec(zoneName("longOffset")) ?? ["", "+", "0", "0"];
    const seconds = Number(hours) * 3600 + Number(minutes) * 60;
    return {
      utc_offset_seconds: sign === "-" ? -seconds : seconds,
      timezone: timeZone,
      timezone_abbreviation: zoneName("short"),
    };
  } catch {
    throw new BadRequest("Invalid timezone");
  }
}
