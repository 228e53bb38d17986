/**
 * Promises that are no job's, but count or limit something, and are of no use after a while: the places of callers
 * that edges of 1c007cb counted when their period is over; the links by which workers share the places of an upstream
 * (`worker/execution/limits.ts`); and the entries of callers' lists of 1c007cb whose job is gone. Links and entries
 * are chains, of which the last is found by way of a few.
 */
import { endOfPeriod } from "../../core/jobs/reservation.ts";

/** How long they are kept at least, in milliseconds: clocks differ, and who uses a chain remembers for an hour how far it is. */
export const AIDS_KEPT = 24 * 3_600_000;

/** Whether this tells of places of a period that is over; versions before numbered them (`p`, `b`) or set some aside (`s`). */
export function isPlaceOver(id: string, now: number): boolean {
  const period = /^.*quota:(\d+\.\d+)\.[tgspb]\d+(?:\.\d+)?$/s.exec(id)?.[1];
  return period !== undefined && now >= endOfPeriod(period);
}

/** The chain that a limit's link or a list's entry belongs to, up to its number, and that; undefined for any other promise. */
export function linkIn(id: string): { chain: string; n: number; isEntry: boolean } | undefined {
  const [, chain, entries, n] = /^(.*(?:limit:[^:]*:|(list:))\d+\.)(\d+)$/s.exec(id) ?? [];
  return chain === undefined ? undefined : { chain, n: Number(n), isEntry: entries !== undefined };
}

/** The number of a chain's last link, found by its binary digits. */
export function endOf(isThere: (n: number) => boolean): number {
  if (!isThere(1)) return 0;
  let step = 1;
  while (isThere(2 * step)) step *= 2;
  let end = step;
  for (step /= 2; step >= 1; step /= 2) if (isThere(end + step)) end += step;
  return end;
}

/**
 * Whether link `n` of a chain is one by which its last, `end`, is found: from a link whose successor is there one goes on by 1,
 * 2, 4 … more, so that the steps to `end` are its binary digits from the left, each preceded by the smaller ones that were tried.
 */
export function isLandmark(n: number, end: number): boolean {
  const before = n - lowest(n);
  return n === end || before === 0 || before === end - (end % lowest(before));
}

/** The lowest binary digit of a number from 1 on, as its value. */
function lowest(n: number): number {
  let digit = 1;
  while (n % (2 * digit) === 0) digit *= 2;
  return digit;
}
