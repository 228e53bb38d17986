/** Which steps a new attempt takes over: those that succeeded, if nothing was recorded after a failure. */
import { expect, test } from "vitest";
import { trial } from "../../testing/simulation/trial.ts";
import { type Context, SECOND } from "../definitions/context.ts";
import { encodeValue } from "../store/codec.ts";
import { JournalRecord } from "./journal.ts";
import { stepsToKeep } from "./resume.ts";

/** The steps that a new attempt takes over from one that fails. */
async function keptOf(fn: (ctx: Context) => Promise<unknown>): Promise<string[] | undefined> {
  const { outcome, records } = await trial(() => fn as never, {}, {}, { deaths: [], isWarm: true });
  expect(outcome).toBe("failed");
  const promise = { id: "r", state: "resolved" as const, value: {}, tags: {}, timeoutAt: 0, createdAt: 0 };
  const stored = records.map(({ n, event }) => new JournalRecord(n, { ...promise, param: encodeValue(event) }));
  const kept = await stepsToKeep(stored, async () => "resolved");
  return kept && [...kept.keys()];
}

const fails = async () => Promise.reject(new Error("it is down"));

test.each<[what: string, book: (ctx: Context) => Promise<unknown>]>([
  ["a step", (ctx) => ctx.step("book", fails, { retry: false })],
  ["a race that a failing branch wins", (ctx) => ctx.race({ own: fails, other: (c) => c.sleep("long", SECOND) })],
  ["branches that all fail", (ctx) => ctx.any({ own: fails })],
  ["a call that times out", (ctx) => ctx.timeout(SECOND, (c) => c.sleep("long", 2 * SECOND))],
])("no step is taken over if the function undid something after the failure of %s", async (_what, book) => {
  const undone = keptOf(async (ctx) => {
    await ctx.step("reserve", () => 1);
    try {
      return await book(ctx);
    } catch (error) {
      await ctx.step("undo", () => 1);
      throw error;
    }
  });
  expect(await undone).toBeUndefined();
});

test("all steps are taken over if nothing followed the failure; a race that an author's branch `late` won is no failure", async () => {
  const kept = keptOf(async (ctx) => {
    await ctx.step("reserve", () => 1);
    await ctx.race({ asked: (c) => c.sleep("long", 2 * SECOND), late: (c) => c.sleep("short", SECOND) });
    await ctx.step("remind", () => 1);
    await ctx.step("book", fails, { retry: false });
  });
  expect(await kept).toEqual(["reserve", "remind"]);
});
