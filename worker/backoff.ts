/**
 * Milliseconds to wait after the `failures`th failure in a row (1 is the first): doubling from `base` up to `max`, half
 * of it random, so that many that failed together do not come back together. `random` is in [0, 1).
 */
export function backoff(
  failures: number,
  { base, max }: { base: number; max: number },
  random = Math.random(),
): number {
  const full = Math.min(max, base * 2 ** (failures - 1));
  return Math.round(full / 2 + (full / 2) * random);
}
