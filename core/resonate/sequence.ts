/**
 * Sequences stored as promises: entries numbered from 1, each a promise of its own. Creating the next entry is atomic: one
 * of several writers gets the number, and the others see that writer's entry. No entry tells where the sequence ends, so readers
 * find the end by the numbers that exist.
 *
 * @example
 * const { n } = await append((n) => createPause(n), { after: 0, isDone: ({ state }) => state === "pending" });
 * const newest = await last((n) => readPause(n));
 */

type Get<T> = (n: number) => Promise<T | undefined>;

/** An entry and its number; `n` is 0 and `entry` undefined if the sequence is empty. */
export interface Last<T> {
  n: number;
  entry: T | undefined;
}

/** Creates entries after the entry `after` until `isDone` for one. `create` returns an existing entry unchanged. */
export async function append<T>(
  create: (n: number) => Promise<T>,
  { after, isDone }: { after: number; isDone: (entry: T, n: number) => boolean },
): Promise<{ n: number; entry: T }> {
  for (let n = after + 1; ; n++) {
    const entry = await create(n);
    if (isDone(entry, n)) return { n, entry };
  }
}

/**
 * Yields the numbers to look at, one after another, until the last existing number is known: first with steps that double, then
 * by halving. `next` must be called with whether the number exists. `after` is known to exist, or is 0.
 */
function* search(after: number): Generator<number, number, boolean> {
  let [found, missing] = [after, Number.POSITIVE_INFINITY];
  for (let step = Math.min(after, 1); found + 1 < missing; step = Math.max(2 * step, 1)) {
    const n = missing < Number.POSITIVE_INFINITY ? Math.floor((found + missing) / 2) : Math.max(found + step, 1);
    if (yield n) found = n;
    else missing = n;
  }
  return found;
}

/**
 * Finds the last entry in a sequence without gaps, with one read at a time. The number of reads is about twice the logarithm of
 * the number of entries after `after`.
 *
 * @param options.after the number of an entry that is known to exist, or 0
 * @param options.entry that entry
 * @param options.isLast whether an entry shows that none follows it
 */
export async function last<T>(
  get: Get<T>,
  { after = 0, entry, isLast = () => false }: { after?: number; entry?: T; isLast?: (entry: T) => boolean } = {},
): Promise<Last<T>> {
  const numbers = search(after);
  let newest: Last<T> = { n: after, entry };
  if (entry !== undefined && isLast(entry)) return newest;
  for (let next = numbers.next(); !next.done;) {
    const n = next.value;
    const found = await get(n);
    if (found !== undefined) {
      newest = { n, entry: found };
      if (isLast(found)) break;
    }
    next = numbers.next(found !== undefined);
  }
  return newest;
}

/** The number of the last entry, or 0 without entries; for readers that can tell synchronously whether an entry exists. */
export function sequenceEnd(exists: (n: number) => boolean): number {
  const numbers = search(0);
  let next = numbers.next();
  while (!next.done) next = numbers.next(exists(next.value));
  return next.value;
}

/**
 * Finds the last entry with few rounds of parallel reads: the first at some distances beyond the last known entry, the second
 * of all entries between two of those. If even the last distance is too short, both rounds are repeated from there.
 *
 * @param rounds lists of rising distances, one for each repetition; the last list serves all further ones. The last distance of
 * a list is not read, and only bounds the second round.
 */
export async function lastInRounds<T>(
  get: Get<T>,
  from: Last<T>,
  [distances = [], ...more]: readonly (readonly number[])[],
): Promise<Last<T>> {
  const probe = async (before: Last<T>, numbers: readonly number[]): Promise<Last<T>> => {
    const entries = await Promise.all(numbers.map(get));
    const i = entries.findLastIndex((entry) => entry !== undefined);
    return i < 0 ? before : { n: numbers[i] as number, entry: entries[i] };
  };
  const points = distances.map((distance) => from.n + distance);
  let newest = await probe(from, points.slice(0, -1));
  const next = points.find((point) => point > newest.n) ?? newest.n;
  const between = Array.from({ length: Math.max(next - newest.n - 1, 0) }, (_, i) => newest.n + 1 + i);
  newest = await probe(newest, between);
  return newest.n + 1 === points.at(-1) ? lastInRounds(get, newest, more.length > 0 ? more : [distances]) : newest;
}

/**
 * Reads the entries from the `from`th on, several at a time. Writers may have several entries under way, so there may be gaps.
 *
 * @param options.batch how many to read next, given how many in a row were missing at the end and how many were read; 0 ends it
 * @param options.onEntry called with each entry, in order
 */
export async function readFrom<T>(
  get: Get<T>,
  from: number,
  options: { batch: (missing: number, read: number) => number; onEntry: (entry: T, n: number) => void },
): Promise<void> {
  let [read, missing] = [0, 0];
  for (let size = options.batch(0, 0); size > 0; size = options.batch(missing, read)) {
    const first = from + read;
    const entries = await Promise.all(Array.from({ length: size }, (_, i) => get(first + i)));
    for (const [i, entry] of entries.entries()) {
      if (entry !== undefined) options.onEntry(entry, first + i);
      missing = entry !== undefined ? 0 : missing + 1;
    }
    read += size;
  }
}

/** How long every entry is kept at least, in milliseconds: clocks differ, and readers remember an existing entry for an hour. */
export const BOOKKEEPING_RETENTION = 24 * 3_600_000;

/**
 * The retention rule of a sequence in which only the end matters: whether {@link last} needs entry `n` to find `end`. Starting
 * from 0, that search reads the powers of two and then determines the binary digits of `end` from the left, so it needs the
 * numbers that it finds on this way.
 */
export function isLandmark(n: number, end: number): boolean {
  const before = n - lowestBit(n);
  return n === end || before === 0 || before === end - (end % lowestBit(before));
}

/** The value of the lowest binary digit that is set in `n`, which is at least 1. */
function lowestBit(n: number): number {
  let digit = 1;
  while (n % (2 * digit) === 0) digit *= 2;
  return digit;
}
