import * as z from "zod";
import { DAY, defineJob } from "./job.ts";

/** The shortest and longest timer, in seconds. */
export const MIN_SECONDS = 1;
export const MAX_SECONDS = 365 * 24 * 60 * 60;

/** The longest name of a timer, in UTF-16 code units. */
export const MAX_TIMER_NAME = 100;

/**
 * A timer's name. `:` and `~` have a meaning in job names; the other characters left out do not fit on one line, or are
 * halves of characters and could not be sent to the Resonate server.
 */
export const TimerName = z
  .string()
  .min(1)
  .max(MAX_TIMER_NAME)
  .refine((name) => !/[:~\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(name), "it has a character that is not accepted");

/**
 * How long a timer's promise outlives its timer: a timer due while every worker is down still completes, late,
 * when one is back within this time.
 */
const GRACE = 7 * DAY;

/** A named durable sleep. */
export const Timer = z.object({
  timer_name: z.string(),
  /** When it fires, ISO 8601 in UTC. Absolute, so that a late start or a replay cannot move it. */
  fires_at: z.iso.datetime(),
});
export type Timer = z.infer<typeof Timer>;

const PREFIX = "timer_";

export const timer = defineJob<Timer>({
  func: "timer",
  args: Timer,
  name: ({ timer_name }) => PREFIX + timer_name,
  owns: (name) => name.startsWith(PREFIX) && TimerName.safeParse(name.slice(PREFIX.length)).success,
  expectedAt: ({ fires_at }) => Date.parse(fires_at),
  deadline: ({ fires_at }) => Date.parse(fires_at) + GRACE,
});
