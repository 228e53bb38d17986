import { describe, expect, test } from "vitest";
import { append, isLandmark, last, lastInRounds, readFrom, sequenceEnd } from "./sequence.ts";

/** A sequence with the numbers for which `exists`, which counts the reads of each round. */
function reader(exists: (n: number) => boolean) {
  const rounds: number[] = [];
  let isOpen = false;
  const get = async (n: number): Promise<number | undefined> => {
    if (!isOpen) {
      isOpen = true;
      rounds.push(0);
    }
    rounds.push((rounds.pop() ?? 0) + 1);
    await undefined;
    isOpen = false;
    return exists(n) ? n : undefined;
  };
  return { get, rounds };
}

describe("the last entry", () => {
  test("is found in about twice a logarithm of reads, from the beginning or from a known entry", async () => {
    for (let end = 0; end <= 300; end++) {
      for (const after of [0, 1, Math.floor(end / 2), end - 1, end].filter((n) => n >= 0 && n <= end)) {
        const { get, rounds } = reader((n) => n <= end);
        expect((await last(get, { after })).n).toBe(end);
        expect(rounds.length).toBeLessThanOrEqual(2 * Math.log2(end - after + 1) + 2);
      }
    }
  });

  test("is confirmed with one read when no newer entry has come", async () => {
    const { get, rounds } = reader((n) => n <= 40);
    expect(await last(get, { after: 40, entry: 40 })).toEqual({ n: 40, entry: 40 });
    expect(rounds).toEqual([1]);
  });

  test("needs no further read when the entry itself tells that it is the last", async () => {
    const { get, rounds } = reader((n) => n <= 4);
    expect(await last(get, { after: 3, isLast: (entry) => entry === 4 })).toEqual({ n: 4, entry: 4 });
    expect(await last(get, { after: 4, entry: 4, isLast: () => true })).toEqual({ n: 4, entry: 4 });
    expect(rounds).toEqual([1]);
  });

  test("is found in two rounds within the distances, and in more rounds beyond them", async () => {
    const distances = [1, 4, 14, 30, 62];
    for (let end = 0; end <= 200; end++) {
      const { get, rounds } = reader((n) => n <= end);
      expect((await lastInRounds(get, { n: 0, entry: undefined }, [distances])).n).toBe(end);
      expect(rounds.length).toBeLessThanOrEqual(end < 61 ? 2 : 2 * Math.ceil((end + 1) / 60));
    }
  });

  test("is found when only the landmarks are left of an earlier part of any length", async () => {
    for (let end = 1; end <= 300; end++) {
      const left = new Set(Array.from({ length: end }, (_, i) => i + 1).filter((n) => isLandmark(n, end)));
      expect(left.size).toBeLessThan(60);
      for (const later of [end, end + 1, end + 2, end + 7, end + 100, 2 * end + 1]) {
        const exists = (n: number) => (n <= end ? left.has(n) : n <= later);
        expect(sequenceEnd(exists)).toBe(later);
        for (const after of [0, 1]) expect((await last(reader(exists).get, { after })).n).toBe(later);
      }
    }
  });
});

test("writers that append at the same time each get a number, without gaps", async () => {
  const entries: string[] = [];
  const create = (by: string) => async (n: number) => {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 3));
    entries[n] ??= by;
    return entries[n];
  };
  const writers = Array.from({ length: 20 }, (_, i) => `writer ${i}`);
  const got = await Promise.all(writers.map((by) => append(create(by), { after: 0, isDone: (entry) => entry === by })));
  expect(got.map(({ n }) => n).sort((a, b) => a - b)).toEqual(writers.map((_, i) => i + 1));
});

test("entries are read in order, past gaps, until no more can follow", async () => {
  const numbers = new Set([1, 2, 4, 5, 6, 9]);
  const { get, rounds } = reader((n) => numbers.has(n));
  const seen: number[] = [];
  const batch = (missing: number, read: number) => (read === 0 ? 3 : missing === 0 ? 8 : 4 - missing);
  await readFrom(get, 1, { batch, onEntry: (entry, n) => seen.push(entry === n ? n : 0) });
  expect(seen).toEqual([...numbers]);
  expect(rounds[0]).toBe(3);
});
