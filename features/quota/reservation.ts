/** Quota reservations: a job's share of the jobs that its caller may have under way; and the refusals beyond the quota. */
import { NotStarted } from "../../core/author/job.ts";

const HOUR = 3_600_000;

/** The length classes of jobs, in milliseconds and in words. */
const LENGTHS = [
  { ms: HOUR, words: "an hour" },
  { ms: 24 * HOUR, words: "a day" },
  { ms: 30 * 24 * HOUR, words: "30 days" },
  { ms: 366 * 24 * HOUR, words: "a year" },
] as const;

/** How many schedules a caller may have. There are few, as each may fire every minute for years. */
export const MOST_SCHEDULES = 100;

/** A job's share of its caller's quota. */
export interface Reservation {
  /** `<hours>.<n>`: the job's length class, and the number, since the epoch, of the period of that length in which it started. */
  period: string;
  /** How many jobs this job counts as; 0 for a job that another caller started. */
  count: number;
}

interface Start {
  /** How long the job is expected to take, in milliseconds. */
  duration: number;
  now: number;
  count: number;
}

export function reservationFor({ duration, now, count }: Start): Reservation {
  const { ms } = lengthOf(duration);
  return { period: `${ms / HOUR}.${Math.floor(now / ms)}`, count };
}

/** The refusal of a start that exceeds a limit, with what to do about it. */
export function exceeded(
  limit: "full" | "stored" | "schedules",
  { jobs: most, bytes }: { jobs: number; bytes: number },
  { duration, now, count }: Start,
): NotStarted {
  if (limit === "schedules")
    return new NotStarted(`a caller may have ${MOST_SCHEDULES} schedules: end one with cancel_job`);
  if (limit === "stored")
    return new NotStarted(
      `what is stored of your jobs comes to the ${bytes} bytes that a caller may have (MAX_STORED_BYTES). ` +
        "Room comes back when ended jobs are removed: by forget_jobs, and by the deployment's retention",
    );
  const { ms, words } = lengthOf(duration);
  const minutes = Math.ceil((ms - (now % ms)) / 60_000);
  const counts = count === 1 ? "" : `this counts as ${count} jobs, and `;
  const next =
    count > most ? `Trying again does not help. Ask for at most ${most} at once` : `Try again in ${minutes} minutes`;
  return new NotStarted(`${counts}a caller may start ${most} jobs that take up to ${words} in ${words}. ${next}`);
}

/** The value of a promise's reservation tag. */
export const tagOf = ({ period, count }: Reservation): string => `${period} ${count}`;

/** The reservation in a promise's tag; `isEarlier` if an edge of commit 1c007cb took it, by a chain of promises. */
export function reservationIn(tag: string | undefined): Reservation & { isEarlier: boolean } {
  const [, chain, period = "", count = 0] = /^(.*quota:)?(\d+\.\d+)(?:\.g)? (\d+)(?: |$)/s.exec(tag ?? "") ?? [];
  return { period, count: Number(count), isEarlier: chain !== undefined };
}

/** When a period ends, in milliseconds since the epoch. */
export function endOfPeriod(period: string): number {
  const [hours = 0, n = 0] = period.split(".").map(Number);
  return (n + 1) * hours * HOUR;
}

function lengthOf(duration: number) {
  return LENGTHS.find(({ ms }) => duration <= ms) ?? LENGTHS[3];
}
