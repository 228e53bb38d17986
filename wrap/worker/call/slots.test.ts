import { expect, test } from "vitest";
import { Slots } from "./slots.ts";

const { signal } = new AbortController();

test("callers take turns, none of several holds all slots, and a slot is freed once", async () => {
  const slots = new Slots(2);
  const order: string[] = [];
  const take = async (caller: string) => {
    const slot = await slots.take(caller, signal);
    order.push(`${caller} ${slot.index}`);
    return slot;
  };
  const [a1, a2, a3, b1] = ["a", "a", "a", "b"].map(take);
  await b1;
  expect(order).toEqual(["a 0", "b 1"]);
  (await b1)?.free();
  const first = await a1;
  first?.free();
  await a2;
  first?.free();
  const b2 = take("b");
  await b2;
  expect(order).toEqual(["a 0", "b 1", "a 0", "b 1"]);
  (await a2)?.free();
  await a3;
  expect(order.at(-1)).toBe("a 0");
});

test("a single caller without a name holds all slots, and one that gives up waiting gets none", async () => {
  const slots = new Slots(1);
  const slot = await slots.take("", signal);
  const stop = new AbortController();
  const turn = slots.take("", stop.signal);
  stop.abort();
  await expect(turn).rejects.toThrow("the job is no longer run here");
  slot.free();
  expect((await slots.take("", signal)).index).toBe(0);
});
