import { expect, test } from "vitest";
import { toBase64 } from "../../resonate/base64.ts";
import type { PromiseRecord } from "../../resonate/connection/protocol.ts";
import { journalEntryId } from "../../resonate/ids.ts";
import { timelineOf } from "./timeline.ts";

/** Reads the timeline of a job with these journal entries, by their numbers, and counts the reads. */
function job(events: Map<number, object>) {
  let reads = 0;
  const get = async (id: string): Promise<PromiseRecord | undefined> => {
    reads += 1;
    const event = [...events].find(([n]) => journalEntryId("job", n) === id)?.[1];
    if (!event) return undefined;
    const state = "over" in event ? "resolved" : "pending";
    const param = { headers: {}, data: toBase64(JSON.stringify(event)) };
    return {
      id,
      state,
      param,
      value: { headers: {} },
      tags: {},
      timeoutAt: 2_000,
      createdAt: 1_000,
      settledAt: 1_500,
    } as never;
  };
  return { look: (from: number, open?: number[]) => timelineOf("job", from, get, open), reads: () => reads };
}

const step = (op: string) => ({ kind: "step", op, over: true });

test("a job without journal entries has an empty timeline", async () => {
  expect(await job(new Map()).look(1)).toEqual({ entries: [], next: 1 });
});

test("a timeline lists journal entries in order, without values, past one that is missing after a crash", async () => {
  const events = new Map<number, object>([
    [1, { ...step("fetch"), value: { secret: true } }],
    [3, { kind: "retry", op: "send", attempt: 1, since: 0, error: { name: "Error", message: "refused" } }],
  ]);
  expect(await job(events).look(1)).toEqual({
    entries: [
      { n: 1, kind: "step", op: "fetch", at: 1_000, endedAt: 1_500 },
      { n: 3, kind: "retry", op: "send", at: 1_000, until: 2_000, attempt: 1, error: "refused" },
    ],
    next: 4,
  });
});

test("a timeline leaves out promises that are not journal entries", async () => {
  const events = new Map<number, object>([
    [1, { nothing: true }],
    [2, step("fetch")],
  ]);
  expect((await job(events).look(1)).entries.map(({ n }) => n)).toEqual([2]);
});

test("each look reads a bounded number of entries, and the next one goes on from there", async () => {
  const { look, reads } = job(new Map(Array.from({ length: 1_000 }, (_, i) => [i + 1, step(`step ${i + 1}`)])));
  const seen: number[] = [];
  for (let from = 1; seen.length < 1_000;) {
    const before = reads();
    const { entries, next } = await look(from);
    expect(reads() - before).toBeLessThanOrEqual(112);
    seen.push(...entries.map(({ n }) => n));
    from = next;
  }
  expect(seen).toEqual(Array.from({ length: 1_000 }, (_, i) => i + 1));
  const before = reads();
  expect(await look(1_001)).toEqual({ entries: [], next: 1_001 });
  expect(reads() - before).toBeLessThanOrEqual(16);
});

test("a reader that names the entries it knows as open gets them again, and goes on past them", async () => {
  const steps = Array.from({ length: 300 }, (_, i): [number, object] => [i + 2, step(`step ${i + 2}`)]);
  const events = new Map<number, object>([[1, { kind: "sleep", op: "nap" }], ...steps]);
  const { look, reads } = job(events);
  const seen = new Set<number>();
  let last = 0;
  for (let from = 1; from > last;) {
    last = from;
    const before = reads();
    const { entries, next } = await look(from, from === 1 ? [] : [1]);
    expect(reads() - before).toBeLessThanOrEqual(113);
    expect(entries[0]).toMatchObject({ n: 1, kind: "sleep" });
    for (const { n } of entries) seen.add(n);
    from = next;
  }
  expect(seen.size).toBe(301);
  events.set(1, { kind: "sleep", op: "nap", over: true });
  expect(await look(302, [1])).toEqual({
    entries: [{ n: 1, kind: "sleep", op: "nap", at: 1_000, until: 2_000, endedAt: 1_500 }],
    next: 302,
  });
});
