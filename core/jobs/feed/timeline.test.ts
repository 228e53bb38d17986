import { expect, test } from "vitest";
import { toBase64 } from "../../store/base64.ts";
import type { PromiseRecord } from "../../store/connection/protocol.ts";
import { journalEntryId } from "../../store/ids.ts";
import { timelineOf } from "./timeline.ts";

/** The records of a job, by their numbers; and how many reads were made. */
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
  return { look: (from: number) => timelineOf("job", from, get), reads: () => reads };
}

const step = (op: string) => ({ kind: "step", op, over: true });

test("a job without records has an empty timeline", async () => {
  expect(await job(new Map()).look(1)).toEqual({ entries: [], next: 1 });
});

test("records are told in order, without values, past one that is missing after a crash", async () => {
  const events = new Map<number, object>([
    [1, { ...step("fetch"), value: { secret: true } }],
    [3, { kind: "retry", op: "send", attempt: 1, since: 0, error: { name: "Error", message: "refused" } }],
  ]);
  expect(await job(events).look(1)).toEqual({
    entries: [
      { n: 1, kind: "step", op: "fetch", at: 1_000, over: 1_500 },
      { n: 3, kind: "retry", op: "send", at: 1_000, until: 2_000, attempt: 1, error: "refused" },
    ],
    // What is waited for may be over at the next look.
    next: 3,
  });
});

test("promises that are no journal entries are left out", async () => {
  const events = new Map<number, object>([
    [1, { nothing: true }],
    [2, step("fetch")],
  ]);
  expect((await job(events).look(1)).entries.map(({ n }) => n)).toEqual([2]);
});

test("a look reads a bounded number of records, and goes on where it ended", async () => {
  const { look, reads } = job(new Map(Array.from({ length: 1_000 }, (_, i) => [i + 1, step(`step ${i + 1}`)])));
  const seen: number[] = [];
  for (let from = 1; seen.length < 1_000; ) {
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
