/**
 * How many jobs a caller may have under way, without counting them: a caller has a number of places for jobs that take
 * up to an hour, as many for those that take up to a day, and so on, anew in every hour, day and so on. A start takes a
 * free place, which is one atomic step wherever it happens. No more than two hours' places are ever in use at once.
 */
import type { Names } from "./names.ts";
import { childOf, decodeValue } from "./promise.ts";
import type { Wire } from "./wire.ts";

const HOUR = 3_600_000;

/** How long jobs take, in milliseconds, and what that is called. */
const LENGTHS = [
  { ms: HOUR, words: "an hour" },
  { ms: 24 * HOUR, words: "a day" },
  { ms: 30 * 24 * HOUR, words: "30 days" },
  { ms: 366 * 24 * HOUR, words: "a year" },
];

/** How many places a start tries. When all are taken, hardly any is free. */
const PROBES = 8;

/** The caller has as many jobs under way as it may. */
export class QuotaExceeded extends Error {
  override name = "QuotaExceeded";
}

/** The job to start: its promise id, and how long it is expected to take from `now`, in milliseconds. */
export interface Start {
  id: string;
  duration: number;
  now: number;
}

/**
 * Takes a place for a job, or finds the one it has.
 *
 * @throws {QuotaExceeded} with the limit and when to try again
 */
export async function takePlace(wire: Wire, names: Names, most: number, { id, duration, now }: Start): Promise<void> {
  const length = LENGTHS.find(({ ms }) => duration <= ms) ?? LENGTHS[LENGTHS.length - 1];
  if (!length) return;
  const period = Math.floor(now / length.ms);
  const hash = new DataView(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(id)));
  const first = hash.getUint32(0);
  const stride = most > PROBES ? hash.getUint32(4) : 1;
  for (let probe = 0; probe < Math.min(PROBES, most); probe++) {
    const place = names.quotaId(`${length.ms / HOUR}.${period}.${(first + probe * stride) % most}`);
    // It has no use of its own, and so ends as soon as it is there.
    const record = await wire.call(childOf(place, place, now, { param: id }));
    if (record && decodeValue(record.param) === id) return;
  }
  const minutes = Math.ceil(((period + 1) * length.ms - now) / 60_000);
  throw new QuotaExceeded(
    `a caller may start ${most} jobs that take up to ${length.words} in ${length.words}. Try again in ${minutes} minutes`,
  );
}
