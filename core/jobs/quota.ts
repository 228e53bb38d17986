/** How many jobs a caller may start: what a job needs, what its tag says of it, and what a caller is told. See `ledger.ts`. */
import { NotStarted } from "../definitions/job.ts";

const HOUR = 3_600_000;

/** How long jobs take, in milliseconds, and what that is called. */
const LENGTHS = [
  { ms: HOUR, words: "an hour" },
  { ms: 24 * HOUR, words: "a day" },
  { ms: 30 * 24 * HOUR, words: "30 days" },
  { ms: 366 * 24 * HOUR, words: "a year" },
] as const;

/** The share of the places between two marks: so much less than all of them may be in use when a start is refused. */
const BETWEEN_MARKS = 0.04;

/** Of how many jobs it is remembered that they are there. */
const MOST_SEEN = 10_000;

/** The caller has started as many jobs as it may. */
export class QuotaExceeded extends NotStarted {
  override name = "QuotaExceeded";
}

/** Places of a period: what its promise ids begin with, how many there are for the caller, and how many a job needs. */
export interface Wanted {
  base: string;
  most: number;
  count: number;
}

/** Places that a job has, as its tag says. */
export interface Places {
  base: string;
  count: number;
  /** How many places there are from one mark to the next; 0 for those of versions before there were marks. */
  unit: number;
  /** How far the chain of what came back was known to be when they were taken. */
  given: Chain;
}

/** A link of a chain, and the sum that it says. */
export interface Chain {
  link: number;
  sum: number;
}

/** The jobs that an isolate knows to be there, by id: they need no place. */
export class Seen {
  readonly #ids = new Set<string>();

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  add(id: string): void {
    if (this.#ids.size >= MOST_SEEN) this.#ids.delete(this.#ids.values().next().value as string);
    this.#ids.add(id);
  }
}

/** The places that a job needs which takes `duration` milliseconds from `now`, of the `most` that its caller has. */
export function wantedFor(
  idOf: (place: string) => string,
  most: number,
  { duration, now, count }: { duration: number; now: number; count: number },
): Wanted {
  const { ms } = lengthOf(duration);
  return { base: idOf(`${ms / HOUR}.${Math.floor(now / ms)}`), most, count };
}

/** Why there is no room for a job, and when to try again. */
export function exceeded(most: number, { duration, now, count }: { duration: number; now: number; count: number }) {
  const { ms, words } = lengthOf(duration);
  const minutes = Math.ceil((ms - (now % ms)) / 60_000);
  const counts = count === 1 ? "" : `this counts as ${count} jobs, and `;
  return new QuotaExceeded(
    `${counts}a caller may start ${most} jobs that take up to ${words} in ${words}. Try again in ${minutes} minutes`,
  );
}

/** What the tag of a job says that has these places. */
export function tagOf({ base, count, unit, given }: Places): string {
  return `${base}.g ${count} ${unit}/${given.link}/${given.sum}/${crypto.randomUUID()}`;
}

/** What a job's tag says of its places. Those that the first versions took by their numbers are given back to nobody. */
export function placesIn(tag: string): Places {
  const [, base = "", count = 0, unit = 0, link = 0, sum = 0] =
    /^(.*)\.g (\d+) (?:(\d+)\/(\d+)\/(\d+)\/)?\S+$/s.exec(tag) ?? [];
  return { base, count: Number(count), unit: Number(unit), given: { link: Number(link), sum: Number(sum) } };
}

/** Whether the period of places is over: nothing is given back then. */
export function isOver(base: string, now: number): boolean {
  const [, hours, period] = /:(\d+)\.(\d+)$/.exec(base) ?? [];
  return now >= (Number(period) + 1) * Number(hours) * HOUR;
}

function lengthOf(duration: number) {
  return LENGTHS.find(({ ms }) => duration <= ms) ?? LENGTHS[3];
}

/** How many places there are from one mark to the next. */
export function unitOf(most: number): number {
  return Math.max(1, Math.floor(most * BETWEEN_MARKS));
}
