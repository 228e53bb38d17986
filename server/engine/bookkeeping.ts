/**
 * Promises that belong to no job, but count, limit or list jobs, and end up without use: the reservations of callers' quotas
 * once their period is over, the links by which workers share an upstream's limit (`worker/execution/limits.ts`), and the
 * entries of callers' lists whose job is gone. Links and entries form numbered chains, whose end is found through a few of
 * their members.
 */
const HOUR = 3_600_000;

/** How long they are kept at least, in milliseconds: clocks differ, and users of a chain remember its end for an hour. */
export const BOOKKEEPING_RETENTION = 24 * HOUR;

/** Whether this is a quota reservation whose period is over. */
export function isReservationOver(id: string, now: number): boolean {
  const [, hours, period] = /quota:(\d+)\.(\d+)\.[tg]\d+(?:\.\d+)?$/.exec(id) ?? [];
  return now >= (Number(period) + 1) * Number(hours) * HOUR;
}

/** The chain that a limit's link or a list's entry belongs to, up to its number, and that number. */
export function chainLink(id: string): { chain: string; n: number; isEntry: boolean } | undefined {
  const [, chain, entries, n] = /^(.*(?:limit:[^:]*:|(list:))\d+\.)(\d+)$/s.exec(id) ?? [];
  return chain === undefined ? undefined : { chain, n: Number(n), isEntry: entries !== undefined };
}

/** The number of a chain's last link, found by its binary digits. */
export function endOf(exists: (n: number) => boolean): number {
  if (!exists(1)) return 0;
  let step = 1;
  while (exists(2 * step)) step *= 2;
  let end = step;
  for (step /= 2; step >= 1; step /= 2) if (exists(end + step)) end += step;
  return end;
}

/**
 * Whether the search for a chain's `end` visits link `n`. From a link whose successor exists the search goes on by 1, 2, 4 …
 * more, so that its steps are the binary digits of `end` from the left, each preceded by the smaller steps that it tried.
 */
export function isLandmark(n: number, end: number): boolean {
  const before = n - lowestDigit(n);
  return n === end || before === 0 || before === end - (end % lowestDigit(before));
}

/** The value of the lowest binary digit that is 1. */
const lowestDigit = (n: number) => 2 ** (n.toString(2).length - 1 - n.toString(2).lastIndexOf("1"));
