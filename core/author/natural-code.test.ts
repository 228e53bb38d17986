/** Code of an author who knows nothing of replays: it does what was meant, or is refused with a message that says why. */
import { expect, test } from "vitest";
import * as z from "zod";
import { SimulatedJob } from "../../testing/simulation/simulated-job.ts";
import { type Context, DAY, HOUR } from "./context.ts";
import { type DurableFunction, implement } from "./implement.ts";
import { defineJob } from "./job.ts";

const args = z.object({ text: z.string(), cents: z.number().default(0) });

/** Runs a job with the arguments `stored` and their `schema`, and returns its end. */
async function end(code: DurableFunction<never, unknown>, stored: unknown = { text: "" }, schema: z.ZodType = args) {
  const job = defineJob({ kind: "anything", args: schema as z.ZodType<never>, id: () => "x" });
  const run = implement(job, code).versionOf(1);
  return new SimulatedJob(run as never, { args: stored, deadline: DAY }).toEnd();
}

const refused = (words: string) => ({
  kind: "failed",
  error: expect.objectContaining({ name: "NondeterminismError", message: expect.stringContaining(words) }),
});

test("additions that forEach makes to a result after it was returned are not silently lost", async () => {
  const collected = async (ctx: Context) => {
    const texts: string[] = [];
    ["a", "b"].forEach(async (name) => {
      texts.push(await ctx.step(name, () => name));
    });
    return { texts };
  };
  expect(await end(collected)).toEqual(refused("what the function returned changed after it had ended, at texts[0]"));
  // Work in the background that does not change the result is allowed.
  const done: string[] = [];
  const noted = async (ctx: Context) => {
    ["a", "b"].forEach(async (name) => {
      await ctx.step(name, () => done.push(name));
    });
    return { texts: ["c"] };
  };
  expect(await end(noted)).toEqual({ kind: "complete", value: { texts: ["c"] } });
  expect(done).toEqual(["a", "b"]);
});

test("a job that can only time out fails before it sleeps, and says so", async () => {
  const sleepy = (ctx: Context) => ctx.sleep("a month", 30 * DAY);
  expect(await end(sleepy)).toEqual(refused('sleep "a month" would end after the job\'s deadline'));
  const raced = async (ctx: Context) => {
    const branches = {
      late: (branch: Context) => branch.sleep("late", 30 * DAY),
      soon: (branch: Context) => branch.sleep("soon", HOUR),
    };
    return (await ctx.race(branches)).winner;
  };
  expect(await end(raced)).toEqual({ kind: "complete", value: "soon" });
});

test("arguments that a schema transforms are not transformed again", async () => {
  const code = async (_ctx: Context, given: unknown) => JSON.stringify(given);
  const cents = z.object({ price: z.number().transform((euros) => euros * 100) });
  expect(await end(code as never, { price: 1200 }, cents)).toEqual(
    refused("the arguments of anything change again at price"),
  );
  const date = z.object({
    at: z.iso.datetime().transform((text) => new Date(text)),
    unit: z.string().trim().default("m"),
  });
  const at = "2026-11-21T00:00:00.000Z";
  expect(await end(code as never, { at }, date)).toEqual({
    kind: "complete",
    value: JSON.stringify({ at, unit: "m" }),
  });
  const asked = z.object({ text: z.string().refine(async () => true) });
  expect(await end(code as never, { text: "" }, asked)).toEqual(refused("are checked by something asynchronous"));
});

/** The context of an author whose editor shows no types. */
// oxlint-disable-next-line typescript/no-explicit-any -- the tests try calls that the types refuse
type Untyped = any;

test.each<[what: string, code: (ctx: Untyped) => Promise<unknown>, words: string]>([
  ["a list of branches", (ctx) => ctx.race([ctx.step("a", () => 1)]), "ctx.race takes a function for each branch"],
  [
    "promises for ctx.all",
    (ctx) => ctx.all([ctx.step("a", () => 1)]),
    "ctx.all takes a list and what is done for each",
  ],
  ["a sleep in words", (ctx) => ctx.sleep("a while", "5s"), "until is 5s; it takes milliseconds or a Date"],
  ["an invalid date", (ctx) => ctx.sleep("a while", new Date("nonsense")), "until is Invalid Date"],
])("%s is refused with a message that says what is meant", async (_what, code, words) => {
  expect(await end(code as never)).toEqual(refused(words));
});
