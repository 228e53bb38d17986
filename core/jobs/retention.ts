/** For how long jobs that have ended are kept. */

/** Longer than the longest job may take: one that waits for another finds its result. */
export const DEFAULT_DAYS = "400";

/** What `RETENTION_DAYS` may say: a number of days above 0, or `forever`. */
export const DAYS = /^(?:forever|(?=.*[1-9])\d+(?:\.\d+)?)$/;

/** For how long jobs that have ended are kept by what `RETENTION_DAYS` says, in milliseconds; undefined: for ever. */
export function keptFor(days: string | undefined): number | undefined {
  const said = days || DEFAULT_DAYS;
  if (!DAYS.test(said))
    throw new RangeError(`RETENTION_DAYS must be a number of days above 0, or "forever", not ${said}`);
  return said === "forever" ? undefined : Number(said) * 86_400_000;
}
