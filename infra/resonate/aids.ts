/**
 * Promises that are no job's, but count or limit something, and are of no use after a while: the places of callers
 * (`core/resonate/quota.ts`) when their period is over, and the links by which workers share the places of an upstream
 * (`worker/limits.ts`), of which the last is found by way of a few.
 */
import { isOver } from "../../core/resonate/quota.ts";

/** How long they are kept at least, in milliseconds: clocks differ, and a worker remembers for an hour how far a chain is. */
export const AIDS_KEPT = 24 * 3_600_000;

/** Whether this tells of places of a period that is over; versions before numbered them (`p`, `b`). */
export function isPlaceOver(id: string, now: number): boolean {
  const base = /^(.*quota:\d+\.\d+)\.[tgspb]\d+$/s.exec(id)?.[1];
  return base !== undefined && isOver(base, now);
}

/** The chain that a link of a limit's belongs to, up to its number, and that; undefined for any other promise. */
export function linkIn(id: string): { chain: string; n: number } | undefined {
  const [, chain, n] = /^(.*limit:[^:]*:\d+\.)(\d+)$/s.exec(id) ?? [];
  return chain === undefined ? undefined : { chain, n: Number(n) };
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
