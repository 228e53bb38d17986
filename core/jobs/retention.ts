/** Retention of ended jobs, in days. Longer than the longest job, so that a job which waits for another finds its result. */
export const DEFAULT_DAYS = "400";

/** What `RETENTION_DAYS` may say: a number of days above 0, or `forever`. */
export const DAYS_PATTERN = /^(?:forever|(?=.*[1-9])\d+(?:\.\d+)?)$/;

/** The retention that `RETENTION_DAYS` sets, in milliseconds; undefined for `forever`. @throws {RangeError} */
export function retentionOf(days: string | undefined): number | undefined {
  const text = days || DEFAULT_DAYS;
  if (!DAYS_PATTERN.test(text))
    throw new RangeError(`RETENTION_DAYS must be a number of days above 0, or "forever", not ${text}`);
  return text === "forever" ? undefined : Number(text) * 86_400_000;
}
