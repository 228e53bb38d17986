/** A job's share of what its caller may have under way, in the caller's record and in a tag of the job's promise. */

const HOUR_MS = 3_600_000;

/** The length classes of jobs, in milliseconds and in words. */
const PERIODS = [
  { ms: HOUR_MS, words: "an hour" },
  { ms: 24 * HOUR_MS, words: "a day" },
  { ms: 30 * 24 * HOUR_MS, words: "30 days" },
  { ms: 366 * 24 * HOUR_MS, words: "a year" },
] as const;

export interface Reservation {
  /** `<hours>.<n>`: the job's length class, and the number, since the epoch, of the period of that length in which it started. */
  period: string;
  /** How many jobs this job counts as; 0 for a job that another caller started. */
  count: number;
}

/** The share of a job that starts `now` and is expected to take `duration` milliseconds. */
export function reservationFor({
  duration,
  now,
  count,
}: {
  duration: number;
  now: number;
  count: number;
}): Reservation {
  const { ms } = lengthOf(duration);
  return { period: `${ms / HOUR_MS}.${Math.floor(now / ms)}`, count };
}

/** The value of a promise's reservation tag. */
export const tagOf = ({ period, count }: Reservation): string => `${period} ${count}`;

/** The reservation in a promise's tag. */
export function reservationIn(tag: string | undefined): Reservation {
  const [, period = "", count = 0] = /^(\d+\.\d+) (\d+)$/.exec(tag ?? "") ?? [];
  return { period, count: Number(count) };
}

/** The tag of another attempt at a job with this tag, which starts `now`; undefined for a job that no quota counts. */
export function renewedTag(tag: string | undefined, now: number): string | undefined {
  const { period, count } = reservationIn(tag);
  const hours = Number(period.split(".", 1)[0]);
  return count > 0 ? tagOf({ period: `${hours}.${Math.floor(now / (hours * HOUR_MS))}`, count }) : undefined;
}

/** The length class of a job that takes so many milliseconds. */
export function lengthOf(duration: number): { ms: number; words: string } {
  return PERIODS.find(({ ms }) => duration <= ms) ?? PERIODS[3];
}
