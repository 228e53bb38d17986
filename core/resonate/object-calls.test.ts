import { expect, test } from "vitest";
import { callsOf, methodsOf } from "./object-calls.ts";

class Counter {
  #count = 0;
  readonly limit = 3;

  async add(by: number): Promise<number> {
    this.#count += by;
    return this.#count;
  }
}

test("methods are called by their names, and what is no method is refused", async () => {
  const object = callsOf(new Counter());
  const counter = methodsOf<Pick<Counter, "add">>(object);
  expect([await counter.add(1), await counter.add(2)]).toEqual([1, 3]);
  await expect(object.call("limit", [])).rejects.toThrow("The object has no method limit.");
  await expect(object.call("remove", [])).rejects.toThrow("The object has no method remove.");
});

test("the methods of an object can be the result of an async function", async () => {
  const found = async () => methodsOf<Pick<Counter, "add">>(callsOf(new Counter()));
  expect(await (await found()).add(5)).toBe(5);
});
