/** What is wrong with the form of a schedule's time. It loads nothing, so that the edge checks its definitions as it starts. */
import * as z from "zod";
import type { ToolSchedule } from "../../core/tools/index.ts";
import { MIN_INTERVAL_SECONDS } from "./min-interval.ts";
import type { When } from "./schedule.ts";

/** A local time that a calendar has. */
const LocalTime = z.iso.datetime({ local: true });

/** A local time, and its offset if it has one. */
const AT_PATTERN = /^(.*?\d)(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?$/s;

/** The least and the greatest number of each of a cron's fields, and its longest step: they begin anew each hour, day, … */
const CRON_FIELDS = [
  { name: "minute", min: 0, max: 59, maxStep: 60 },
  { name: "hour", min: 0, max: 23, maxStep: 24 },
  { name: "day of the month", min: 1, max: 31, maxStep: 31 },
  { name: "month", min: 1, max: 12, maxStep: 12 },
  { name: "day of the week", min: 0, max: 7, maxStep: 7 },
];

/** The words of a cron: names, and `L`, the last. */
const CRON_WORD = /^(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat|l)$/i;

/** What is wrong with the form of a time, in words; undefined if nothing is. */
export function problemInForm(when: When): string | undefined {
  const { cron, timezone, every, at } = when;
  if ([cron, every, at].filter((one) => one !== undefined).length !== 1) return "give one of cron, every and at";
  if (timezone !== undefined && every !== undefined) return "timezone: it belongs to cron, or to at without an offset";
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone ?? "UTC" });
  } catch {
    return `timezone: ${JSON.stringify(timezone)} is unknown. Accepted: an IANA name such as Europe/Zurich`;
  }
  if (every !== undefined && !(every >= MIN_INTERVAL_SECONDS))
    return `every: must be ${MIN_INTERVAL_SECONDS} seconds or more`;
  return cron !== undefined ? problemInCron(cron) : at !== undefined ? problemInAt(at, timezone) : undefined;
}

/** What is wrong with the schedule of a tool's definition. */
export function problemInDefinition(tool: string, schedule: ToolSchedule): string | undefined {
  const problem = problemInForm(whenOf(schedule));
  return problem === undefined ? undefined : `The schedule of the tool ${tool}: ${problem}.`;
}

/** When a definition's schedule fires. */
export function whenOf({ cron, timezone, at, every }: ToolSchedule): When {
  const all = { cron, timezone, at, ...(every !== undefined && { every: every / 1_000, from: 0 }) };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

function problemInCron(cron: string): string | undefined {
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== 5) return "cron: must have five fields: minute, hour, day of the month, month, day of the week";
  for (const [i, { name, min, max, maxStep }] of CRON_FIELDS.entries()) {
    const field = fields[i] ?? "";
    // The library takes such a step as one to the end of the field: every hour for every 90 minutes.
    for (const [, step] of field.matchAll(/\/(\d+)/g))
      if (Number(step) > maxStep)
        return `cron: a step of ${step} is over ${maxStep}, the most of its field. Write every instead`;
    const words = field.match(/[a-z]+/gi) ?? [];
    // The library takes a random value at each reading.
    if (words.some((word) => /^h$/i.test(word)))
      return "cron: H stands for no certain time. Write a number in its place";
    const numbers = field.replace(/[/#]\d+/g, "").match(/\d+/g) ?? [];
    const isOutside = numbers.some((number) => Number(number) < min || Number(number) > max);
    if (isOutside || !/^[\w*,/?#-]+$/.test(field) || !words.every((word) => CRON_WORD.test(word)))
      return `cron: ${JSON.stringify(field)} is no ${name}, from ${min} to ${max}`;
  }
  return undefined;
}

function problemInAt(at: string, timezone: string | undefined): string | undefined {
  const [, local, offset] = AT_PATTERN.exec(at) ?? [];
  if (!LocalTime.safeParse(local).success || (offset !== undefined) === (timezone !== undefined))
    return "at: must be ISO 8601, either with an offset (2027-03-04T08:00:00+01:00) or a local time with timezone";
  return undefined;
}
