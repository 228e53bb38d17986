import { expect, test } from "vitest";
import { type Around, around, type Observer, observedBy } from "./around.ts";

test("the first feature is outermost, and one that is undefined is left out", async () => {
  const events: string[] = [];
  const layer =
    (name: string): Around<string, string> =>
    async (subject, next) => {
      events.push(`${name} begins with ${subject}`);
      const result = await next();
      events.push(`${name} has ${result}`);
      return result;
    };
  const run = around([layer("outer"), undefined, layer("inner")], async (subject) => `the result of ${subject}`);
  expect(await run("work")).toBe("the result of work");
  expect(events).toEqual([
    "outer begins with work",
    "inner begins with work",
    "inner has the result of work",
    "outer has the result of work",
  ]);
});

test("a feature may answer in place of the work, and refuse it", async () => {
  let worked = 0;
  const work = async () => ++worked;
  expect(await around<string, number>([async () => 7], work)("x")).toBe(7);
  const refuse: Around<string, number> = async () => {
    throw new Error("refused");
  };
  await expect(around([refuse], work)("x")).rejects.toThrow("refused");
  expect(worked).toBe(0);
});

test("without features the work itself is called", () => {
  const work = async (subject: number) => subject;
  expect(around([], work)).toBe(work);
});

test("an event goes to the features that observe its type, one after another", async () => {
  const seen: string[] = [];
  const observer = (name: string, observes?: readonly ("start" | "end")[]): Observer<{ type: "start" | "end" }> => ({
    ...(observes && { observes }),
    async observe({ type }) {
      await undefined;
      seen.push(`${name}: ${type}`);
    },
  });
  const features: Observer<{ type: "start" | "end" }>[] = [observer("all"), {}];
  const observe = observedBy(features);
  // Features may be added until the first event.
  features.push(observer("ends", ["end"]));
  for (const type of ["start", "end", "end"] as const) await observe({ type });
  expect(seen).toEqual(["all: start", "all: end", "ends: end", "all: end", "ends: end"]);
});
