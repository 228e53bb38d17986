import * as z from "zod";
import {
  FIRST_YEAR,
  isoDate,
  Latitude,
  Longitude,
  monthAvailability,
  splitGeneration,
  type WeatherMonth,
  weather,
} from "../jobs/index.ts";
import { startJob } from "../start.ts";
import { JobStatus, statusOf } from "../status.ts";
import { lenientNumber } from "./arguments.ts";
import { defineJobTool } from "./job-tool.ts";
import { defineTool, ToolError } from "./tool.ts";

/** Where, and by which days. */
export const placeInput = {
  latitude: lenientNumber(Latitude).describe("Degrees north, a number from -90 to 90."),
  longitude: lenientNumber(Longitude).describe("Degrees east, a number from -180 to 180."),
  timezone: z
    .preprocess(timezoneOf, z.string().refine(isTimezone, "no such time zone is known").optional())
    .describe(
      "An IANA time zone name such as America/Edmonton, by which days begin and end. Leave out for the one at the coordinates.",
    ),
};

const weatherInput = z.object({
  latitude: placeInput.latitude,
  longitude: placeInput.longitude,
  year: lenientNumber(z.int().min(FIRST_YEAR).max(9999)).describe(
    `The year, a whole number from ${FIRST_YEAR} to this year.`,
  ),
  month: lenientNumber(z.int().min(1).max(12)).describe("The month, a whole number from 1 to 12."),
  timezone: placeInput.timezone,
});

export const startGathering = defineTool({
  name: "start_gathering",
  title: "Start gathering weather",
  description:
    "Start gathering one month of historical daily weather (maximum and minimum temperature, precipitation) for a " +
    "place. Returns a job_name at once, while the work goes on in the background and survives crashes; it never waits " +
    "for the data. Collect the data with await_result, or look with probe_status, now or in any later conversation. " +
    "Calling again with the same arguments finds the same job and never fetches twice; a job that failed is started again.",
  input: weatherInput,
  output: z.object({
    job_name: z.string().describe("The name to collect the result by, from any session."),
    status: JobStatus.describe("running, or complete when this month was gathered before."),
    note: z.string().optional().describe("What is special about this job, when anything is."),
  }),
  annotations: { idempotentHint: true, readOnlyHint: false, destructiveHint: false, openWorldHint: true },
  async run(args, { store, now }) {
    const month = monthToGather(args, now);
    const promise = await startJob(store, weather, month, now);
    const notes = [];
    const { base, generation } = splitGeneration(promise.name);
    if (generation > 1) notes.push(`Attempt ${generation}: an earlier attempt under ${base} ended without a result.`);
    if (month.requested_on) {
      notes.push(
        `The archive cannot have this month whole yet, so the result will be partial, as of ${month.requested_on}.`,
      );
    }
    return {
      job_name: promise.name,
      status: statusOf(promise),
      ...(notes.length > 0 && { note: notes.join(" ") }),
    };
  },
});

export const weatherData = defineJobTool({
  name: "weather_data",
  title: "Weather of a month",
  description:
    "Get one month of historical daily weather (maximum and minimum temperature, precipitation) for a place. It is a " +
    "durable job, the same one that start_gathering starts: when it takes longer than a call should, the answer is its " +
    "job_name, to collect with await_result.",
  input: weatherInput,
  annotations: { idempotentHint: true, readOnlyHint: false, destructiveHint: false, openWorldHint: true },
  start: (args, { store, now }) => startJob(store, weather, monthToGather(args, now), now),
});

/** The canonical arguments of the job. @throws {ToolError} for a month that has not begun */
function monthToGather(args: z.output<typeof weatherInput>, now: number): WeatherMonth {
  const { latitude, longitude, year, month, timezone } = args;
  const availability = monthAvailability(year, month, now);
  if (availability === "none") {
    throw new ToolError(
      `month: ${year}-${String(month).padStart(2, "0")} has not begun. Accepted: a month up to the present one, ${isoDate(now).slice(0, 7)}.`,
    );
  }
  return {
    // A negative zero would be another number in the stored arguments.
    latitude: latitude + 0,
    longitude: longitude + 0,
    year,
    month,
    ...(timezone !== undefined && { timezone }),
    ...(availability === "part" && { requested_on: isoDate(now) }),
  };
}

/** The zone's own spelling of a time zone; `auto`, an empty string and `null` are the default said aloud. */
function timezoneOf(value: unknown): unknown {
  if (value === null) return undefined;
  if (typeof value !== "string") return value;
  const zone = value.trim();
  if (zone === "" || zone.toLowerCase() === "auto") return undefined;
  return isTimezone(zone) ? new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone : zone;
}

/** Whether it is an IANA zone name. An offset such as `+05:00` is none, and its `:` has no place in a job name. */
function isTimezone(zone: string): boolean {
  if (!/^[A-Za-z][\w+\-/]*$/.test(zone)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}
