import { expect, test } from "vitest";
import { EVENT, LEFT_OUT } from "../../definitions/event.ts";
import { encodeValue } from "../../store/codec.ts";
import type { PromiseRecord } from "../../store/connection/protocol.ts";
import { outputId } from "../../store/ids.ts";
import { partialOf } from "./partial.ts";

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

test("an output that the job had no room for is passed", async () => {
  const { store } = storeOf([1, LEFT_OUT, 2]);
  expect(await partialOf(store, "job", { from: 0, limit: 1_000 })).toEqual({ values: [1, 2], next_offset: 3 });
});

test("a job that has emitted nothing has no partial results", async () => {
  expect(await partialOf(storeOf([]).store, "job", { from: 0, limit: 1_000 })).toBeUndefined();
});
