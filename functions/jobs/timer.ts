import * as z from "zod";
import { DAY, defineJob } from "./job.ts";

/** The shortest and longest timer, in seconds. */
export const MIN_SECONDS = 1;
export const MAX_SECONDS = 365 * 24 * 60 * 60;

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

export const timer = defineJob<Timer>({
  func: "timer",
  args: Timer,
  name: ({ timer_name }) => `timer_${timer_name}`,
  owns: (name) => name.startsWith("timer_") && name.length > "timer_".length && !/[:~]/.test(name),
  expectedAt: ({ fires_at }) => Date.parse(fires_at),
  deadline: ({ fires_at }) => Date.parse(fires_at) + GRACE,
});
