import { expect, test } from "vitest";
import { EVENT, LEFT_OUT } from "../../author/event.ts";
import { encodeValue } from "../../resonate/codec.ts";
import type { PromiseRecord } from "../../resonate/connection/protocol.ts";
import { outputId } from "../../resonate/ids.ts";
import { latestOf, partialOf } from "./partial.ts";

/** A store with these emitted values, and the ids that were read. */
function storeOf(emitted: unknown[]) {
  const promises = new Map(emitted.map((value, i) => [outputId("job", i + 1), { param: encodeValue(value) }]));
  const read: string[] = [];
  const child = async (id: string) => {
    read.push(id);
    return promises.get(id) as PromiseRecord | undefined;
  };
  return { store: { child } as never, read };
}
const event = { [EVENT]: "price", payload: {} };

test("where a job has emitted events alone, the next call goes on after them", async () => {
  const { store, read } = storeOf(Array.from({ length: 20 }, () => event));
  const first = await partialOf(store, "job", { from: 0, limit: 1_000 });
  expect(first).toEqual({ values: [], next_offset: 20 });
  read.length = 0;
  expect(await partialOf(store, "job", { from: first?.next_offset, limit: 1_000 })).toEqual(first);
  expect(read[0]).toBe(outputId("job", 21));
});

test("one call reads a bounded number of outputs, however many of them are events", async () => {
  const { store, read } = storeOf([1, ...Array.from({ length: 20_000 }, () => event), 2]);
  const first = await partialOf(store, "job", { from: 0, limit: 1_000 });
  expect(first).toEqual({ values: [1], next_offset: read.length, more: true });
  expect(read.length).toBeLessThan(110);
  const last = await partialOf(store, "job", { from: 19_990, limit: 1_000 });
  expect(last).toEqual({ values: [2], next_offset: 20_002 });
});

test("the newest partial results are shown although some events came after them, from a bounded number of outputs", async () => {
  const { store, read } = storeOf([1, 2, event, 3, ...Array.from({ length: 7 }, () => event)]);
  expect(await latestOf(store, "job", { emitted: 3, events: 8 })).toEqual({ count: 3, values: [3, 2, 1] });
  expect(read.length).toBe(11);
  const far = storeOf([1, ...Array.from({ length: 100 }, () => event)]);
  expect(await latestOf(far.store, "job", { emitted: 1, events: 100 })).toEqual({ count: 1, values: [] });
  expect(far.read.length).toBe(20);
  const near = storeOf([1, 2, 3, 4, 5, 6, 7]);
  expect(await latestOf(near.store, "job", { emitted: 7 })).toEqual({ count: 7, values: [7, 6, 5, 4, 3] });
  expect(near.read.length).toBe(5);
});

test("an output that the job had no room for is passed", async () => {
  const { store } = storeOf([1, LEFT_OUT, 2]);
  expect(await partialOf(store, "job", { from: 0, limit: 1_000 })).toEqual({ values: [1, 2], next_offset: 3 });
});

test("a job that has emitted nothing has no partial results", async () => {
  expect(await partialOf(storeOf([]).store, "job", { from: 0, limit: 1_000 })).toBeUndefined();
});
