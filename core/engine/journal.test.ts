import { expect, test } from "vitest";
import { encodeValue } from "../resonate/codec.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import { journalEntryId } from "../resonate/ids.ts";
import { Journal, type JournalEntry, maxUnderWay } from "./journal.ts";

const base = { state: "resolved", value: {}, tags: {}, timeoutAt: 1, createdAt: 1, settledAt: 1 } as const;

function record(n: number, event: JournalEntry, state: PromiseRecord["state"] = "resolved"): PromiseRecord {
  return { ...base, id: journalEntryId("j", n), state, param: encodeValue(event) };
}

test("all records are found, even with gaps that dead workers left between them", async () => {
  for (let round = 0; round < 300; round++) {
    // Each worker writes as many records at once as it may. Any of them get lost, and the next worker goes on after the
    // last stored one.
    const there = new Map<string, PromiseRecord>();
    const journal = new Journal();
    for (let worker = 0; worker < 12; worker++) {
      const most = maxUnderWay(journal.events.length);
      const first = journal.last + 1;
      const isLast = worker === 11;
      for (let n = first; n < first + most; n++) {
        if (isLast ? n === first + most - 1 : Math.random() < 0.4) {
          there.set(journalEntryId("j", n), record(n, { kind: "step", op: `s${n}` }));
        }
      }
      const known = journal.events.length;
      await journal.load("j", async (id) => there.get(id));
      expect(journal.events.length).toBeGreaterThanOrEqual(known);
    }
    expect(journal.events.map(({ promise }) => promise.id)).toEqual([...there.keys()]);
  }
});

test("6,000 records are read in batches, with few reads beyond the last", async () => {
  let under = 0;
  let most = 0;
  let reads = 0;
  const journal = new Journal();
  await journal.load("j", async (id) => {
    reads += 1;
    most = Math.max(most, ++under);
    await undefined;
    under -= 1;
    const n = Number(id.slice(3));
    return n <= 6_000 ? record(n, { kind: "step", op: `s${n}`, value: { n } }) : undefined;
  });
  expect(journal.events).toHaveLength(6_000);
  expect(reads).toBeLessThan(6_100);
  expect(most).toBe(32);
});

test("each read of a record's value returns a new copy, exactly as it was stored", () => {
  const value = { list: [1, null], text: "__INF__", like: { __type: "error", message: "none" } };
  const journal = new Journal();
  const recorded = journal.add(record(1, { kind: "step", op: "s", value }), 1);
  const first = recorded?.value as typeof value;
  first.list.push(2);
  expect(recorded?.value).toEqual(value);
  expect(journal.add(record(2, { kind: "step", op: "t", value: null }), 2)?.value).toBeNull();
  expect(journal.add(record(3, { kind: "step", op: "u" }), 3)?.value).toBeUndefined();
});

test("a promise that holds no record is ignored", () => {
  const journal = new Journal();
  expect(journal.add({ ...base, id: journalEntryId("j", 1), param: {} }, 1)).toBeUndefined();
  expect(journal.add({ ...base, id: journalEntryId("j", 1), param: { data: "%%%" } }, 1)).toBeUndefined();
  expect(journal.add({ ...base, id: journalEntryId("j", 1), param: encodeValue({ other: 1 }) }, 1)).toBeUndefined();
  expect(journal.events).toEqual([]);
});

test("the journal remembers settled promises of its own job and of others", () => {
  const journal = new Journal();
  journal.add(record(1, { kind: "sleep", op: "s" }, "pending"), 1);
  journal.noteSettled(record(1, { kind: "sleep", op: "s" }));
  expect(journal.events[0]?.promise.state).toBe("resolved");
  expect(journal.settledElsewhere(journalEntryId("j", 1))).toBeUndefined();
  journal.noteSettled({ ...base, id: "other", param: {}, value: encodeValue(5) });
  expect(journal.settledElsewhere("other")).toMatchObject({ state: "resolved" });
});
