/** A span of months of daily weather at a place, composed of the jobs of its months. */
import * as z from "zod";
import { type Answer, DAY, defineDurableTool, defineJob, type ToolContext, ToolError } from "../../core/index.ts";
import { isComplete, monthAvailability, today } from "./calendar.ts";
import {
  annotations,
  DailyWeather,
  FIRST_YEAR,
  type Month,
  monthArgs,
  placeId,
  placeInput,
  requestDay,
  roundDegrees,
  weatherChart,
  zoneAndDay,
} from "./month.ts";

const MAX_MONTHS = 240;

/** How many months are gathered without the caller's confirmation. */
export const MAX_UNCONFIRMED_MONTHS = 24;

/** The name of the question that asks for confirmation. */
export const CONFIRM_QUESTION = "confirm";

const YearMonth = z.string().regex(/^\d{4}-(0[1-9]|1[0-2])$/);

/** The stored arguments; both ends are included. */
const Range = z.object({
  latitude: z.number(),
  longitude: z.number(),
  /** `YYYY-MM`. */
  from: YearMonth,
  to: YearMonth,
  timezone: z.string().optional(),
  /** The day of the request, present only while the archive cannot have all months complete. */
  requested_on: z.iso.date().optional(),
  /** The earliest possible day at the place then; present with `requested_on`. Not part of the name. */
  earliest: z.iso.date().optional(),
  /** Whether the caller has confirmed a long range in the call. Not part of the name. */
  confirmed: z.boolean(),
});
export type Range = z.infer<typeof Range>;

const Gathered = z.object({
  months: z.array(
    z.looseObject({
      year: z.number(),
      month: z.number(),
      job_name: z.string(),
      weather: DailyWeather.optional(),
      error: z.string().optional(),
    }),
  ),
  missing: z.number().optional().describe("How many months could not be had; asking again tries them again."),
});

export const range = defineJob({
  kind: "weather_range",
  args: Range,
  result: Gathered,
  id: ({ from, to, ...place }) => `${placeId(place)}_${from}_${to}${zoneAndDay(place)}`,
  // Arguments that are not part of the name do not change the result.
  otherArguments: "accept",
  // Leaves time for a person to answer; the months have their own deadlines.
  deadline: 14 * DAY,
  // A caller's quota counts requests to the archive.
  counts: ({ from, to }) => monthIndex(to) - monthIndex(from) + 1,
  // A later call tries missing months again; a complete range is kept.
  freshFor: ({ missing = 0 }) => (missing > 0 ? 0 : undefined),
  view: weatherChart("months.weather."),
});

/** The arguments of the jobs of the months, in order. */
export function monthsOf(args: Range): Month[] {
  const { from, to, requested_on, earliest, latitude, longitude, timezone } = args;
  const first = monthIndex(from);
  return Array.from({ length: monthIndex(to) - first + 1 }, (_, i) => {
    const [year, month] = [Math.floor((first + i) / 12), ((first + i) % 12) + 1];
    const isPartial = earliest !== undefined && !isComplete(year, month, earliest);
    return monthArgs({
      latitude,
      longitude,
      year,
      month,
      timezone,
      requested_on: isPartial ? requested_on : undefined,
    });
  });
}

/** Months since the year 0. */
function monthIndex(yearMonth: string): number {
  return Number(yearMonth.slice(0, 4)) * 12 + Number(yearMonth.slice(5)) - 1;
}

/** Has no pattern in its JSON Schema, because some clients cannot read patterns; the description gives the form. */
const yearMonth = z
  .string()
  .refine((month) => YearMonth.safeParse(month).success, { message: "it is not a month", abort: true })
  .refine((month) => month >= `${FIRST_YEAR}`, `the archive begins in ${FIRST_YEAR}`);

const RangeInput = z.object({
  latitude: placeInput.latitude,
  longitude: placeInput.longitude,
  from: yearMonth.describe("First month, YYYY-MM, from 1940-01."),
  to: yearMonth.describe("Last month, YYYY-MM."),
  timezone: placeInput.timezone,
  confirm: z.boolean().optional().describe(`true when the user agreed to so many; never set it unasked.`),
});

export const weatherRange = defineDurableTool({
  job: range,
  name: "weather_range",
  title: "Weather of a span of months",
  description: `Daily weather of a span of months, as weather_data; the user has to agree to more than ${MAX_UNCONFIRMED_MONTHS}.`,
  input: RangeInput,
  consent: ["confirm"],
  annotations,
  args: rangeToGather,
  async onStarted({ jobName, status, args }, { confirm }, context) {
    if (confirm && status === "running" && !args.confirmed) await confirmRunning(jobName, context);
  },
});

/** The stored arguments. @throws {ToolError} for an invalid range, or one that needs a confirmation */
async function rangeToGather(input: z.output<typeof RangeInput>, context: ToolContext): Promise<Range> {
  const { now, asks, mayConfirm, jobs } = context;
  const { from, to, timezone, confirm = false } = input;
  const place = { latitude: roundDegrees(input.latitude), longitude: roundDegrees(input.longitude), timezone };
  const months = monthIndex(to) - monthIndex(from) + 1;
  if (months < 1) throw new ToolError(`to: ${to} is before ${from}. Accepted: a month not before \`from\`.`);
  if (months > MAX_MONTHS) {
    throw new ToolError(`to: ${from} to ${to} are ${months} months. Accepted: up to ${MAX_MONTHS} months at a time.`);
  }
  const [year, month] = [Number(to.slice(0, 4)), Number(to.slice(5))];
  const availability = monthAvailability(year, month, place, now);
  if (availability === "none") {
    const present = today(place, now).latest.slice(0, 7);
    throw new ToolError(`to: ${to} has not begun. Accepted: a month up to the present one, ${present}.`);
  }
  const { timezone: zone, ...coordinates } = place;
  const args: Range = {
    ...coordinates,
    from,
    to,
    ...(zone !== undefined && { timezone: zone }),
    ...(availability === "partial" && {
      requested_on: requestDay(place, year, month, now),
      earliest: today(place, now).earliest,
    }),
    confirmed: confirm,
  };
  if (months > MAX_UNCONFIRMED_MONTHS && !confirm && !asks && !(await needsNoConsent(args, jobs))) {
    const advice = mayConfirm
      ? "Ask the user, then call again with confirm: true."
      : `They agree in a client that shows questions; here, ask for up to ${MAX_UNCONFIRMED_MONTHS} months at a time.`;
    throw new ToolError(
      `${await range.name(args)} takes ${months} requests, to which the user has to agree. ${advice}`,
    );
  }
  return args;
}

/** Whether the range is complete, or its job is running and asks for the confirmation itself. */
async function needsNoConsent(args: Range, jobs: ToolContext["jobs"]): Promise<boolean> {
  const job = await jobs.find(range, args);
  return job?.status === "running" || (job?.status === "complete" && (job.result?.missing ?? 0) === 0);
}

/** How long a new job may take to ask its question. */
const QUESTION_TIMEOUT_MS = 3_000;

/** Confirms a running job that an unconfirmed call started. @throws {ToolError} if the job does not ask in time */
async function confirmRunning(jobName: string, { jobs, signal }: ToolContext): Promise<void> {
  const yes: Answer = { action: "accept", content: { confirm: true } };
  for (const startedAt = Date.now(); Date.now() - startedAt < QUESTION_TIMEOUT_MS && !signal.aborted;) {
    if ((await jobs.answer(jobName, CONFIRM_QUESTION, yes)) !== "notAsked") return;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new ToolError(
    `Nothing was done: ${jobName} was started without being confirmed, and has not asked for it yet. Repeat the same call.`,
  );
}
