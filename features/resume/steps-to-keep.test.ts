/** Which steps a new attempt takes over: those that succeeded, if nothing was recorded after a failure. */
import { expect, test } from "vitest";
import { type Context, SECOND } from "../../core/author/context.ts";
import { type JournalEntry, JournalRecord } from "../../core/engine/journal.ts";
import { encodeValue } from "../../core/resonate/codec.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { trial } from "../../testing/simulation/trial.ts";
import { stepsToKeep } from "./steps-to-keep.ts";

const STORED = { id: "r", state: "resolved" as const, value: {}, tags: {}, timeoutAt: 0, createdAt: 0 };

/** The steps that a new attempt takes over from one that fails, or why it takes none. */
async function keptOf(fn: (ctx: Context) => Promise<unknown>): Promise<string[] | string> {
  const { outcome, records } = await trial(() => fn as never, {}, {}, { deaths: [], isWarm: true });
  expect(outcome).toBe("failed");
  const stored = records.map(({ n, event }) => new JournalRecord(n, { ...STORED, param: encodeValue(event) }));
  const kept = await stepsToKeep(stored, async () => "resolved");
  return typeof kept === "string" ? kept : [...kept.keys()];
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
  expect(await undone).toContain("recorded work after a failure");
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

test("no step is taken over if its undo was made, although no call had failed", async () => {
  const undone = keptOf(async (ctx) => {
    ctx.onUndo("reserve", () => 1);
    await ctx.step("reserve", () => 1);
    throw new Error("it is too late");
  });
  expect(await undone).toContain("may have undone its steps");
});

test("a new attempt ends again what it starts again", async () => {
  const kept = keptOf(async (ctx) => {
    const child = (kind: string) => ({ kind, args: { parse: (value: unknown) => value as object } });
    await ctx.race({
      own: (c) => c.start(child("nap"), {}).then((nap) => nap.result()),
      late: (c) => c.sleep("a", SECOND),
    });
    await (await ctx.start(child("walk"), {})).cancel();
    await ctx.step("remind", () => 1);
    await ctx.step("book", fails, { retry: false });
  });
  expect(await kept).toEqual(["remind"]);
});

test.each<[state: PromiseRecord["state"] | undefined, reason: string]>([
  [undefined, 'went on after "paid", a callback of its own or a job that is gone: its steps are done again'],
  ["rejected", "recorded work after a failure, which may have undone its steps: they are done again"],
])(
  "no step is taken over after an outcome that a new attempt lacks, and the reason says so: %s",
  async (state, reason) => {
    const record = (n: number, event: JournalEntry) => new JournalRecord(n, { ...STORED, param: encodeValue(event) });
    const records = [
      record(1, { kind: "step", op: "charge" }),
      record(2, { kind: "step", op: "ship", error: { name: "Error", message: "it is down" }, after: ["paid"] }),
    ];
    expect(await stepsToKeep(records, async () => state)).toBe(reason);
  },
);
