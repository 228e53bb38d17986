import { expect, test } from "vitest";
import { objectWith } from "../../test/support/object-calls.ts";
import { ResonateRefused, ResonateUnavailable } from "./connection/failures.ts";
import { answered, methodsInRole, splitRole } from "./object-calls.ts";

interface Methods {
  add(by: number): number;
}

const counterWith = (add: (by: number) => unknown) =>
  methodsInRole<Methods>(objectWith({ "counter.add": add }), "counter");

test("methods are called by their names in the role of their object", async () => {
  let count = 0;
  const counter = counterWith((by) => answered(() => (count += by)));
  expect([await counter.add(1), await counter.add(2)]).toEqual([1, 3]);
  expect(splitRole("counter.add")).toEqual(["counter", "add"]);
});

test("the methods of an object can be the result of an async function", async () => {
  const found = async () => counterWith((by) => answered(() => by));
  expect(await (await found()).add(5)).toBe(5);
});

test("a failure of the Resonate server keeps its class, and an object that does not answer counts as unavailable", async () => {
  const refused = counterWith(() =>
    answered(() => {
      throw new ResonateRefused("it answered 400", { status: 400 });
    }),
  );
  await expect(refused.add(1)).rejects.toBeInstanceOf(ResonateRefused);
  await expect(refused.add(1)).rejects.toMatchObject({ status: 400 });
  const lost = methodsInRole<Methods>(objectWith({}), "counter");
  await expect(lost.add(1)).rejects.toBeInstanceOf(ResonateUnavailable);
});
