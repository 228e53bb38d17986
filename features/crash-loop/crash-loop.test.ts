import { expect, test } from "vitest";
import { type Context, HOUR, MINUTE } from "../../core/author/context.ts";
import type { Journal } from "../../core/engine/journal.ts";
import { SimulatedJob } from "../../testing/simulation/simulated-job.ts";
import { needsMark, restAfter } from "./crash-loop.ts";
import { leaveSignOfLife } from "./task.ts";

type Fn = (ctx: Context) => Promise<unknown>;

/** Runs the job to its end. Returns how many executions there were, and before how many of them others seemed lost. */
async function suspected(
  fn: Fn,
  prepare: (simulated: SimulatedJob) => void = () => {},
): Promise<[all: number, suspects: number]> {
  const simulated: SimulatedJob = new SimulatedJob(fn, {
    beforeSleep: (record) =>
      leaveSignOfLife({ memory: simulated, lease: { version: simulated.journal.version + 1 } }, record),
  });
  prepare(simulated);
  for (let [all, suspects] = [1, 0]; ; all++) {
    const { kind } = await simulated.next();
    if (kind !== "asleep") return [all, suspects];
    if (needsMark(simulated.journal, simulated.journal.version + 1)) suspects += 1;
  }
}

test("a job that sleeps, waits for others or looks again and again is not suspected, with or without records", async () => {
  const sleeps: Fn = async (ctx) => {
    for (let i = 0; i < 30; i++) await ctx.sleep("nap", MINUTE);
  };
  expect(await suspected(sleeps)).toEqual([31, 0]);

  // Each job that ends wakes the waiting one, which then waits for the rest.
  const names = Array.from({ length: 30 }, (_, i) => `other ${i}`);
  const waits: Fn = (ctx) => Promise.all(names.map((name) => ctx.await(name)));
  const settling = ({ sim, clock }: SimulatedJob) =>
    names.map(async (name, i) => {
      await sim.start(name, {}, clock.now() + HOUR);
      clock.after((i + 1) * MINUTE, () => sim.settle(name, "resolved"));
    });
  expect(await suspected(waits, settling)).toEqual([31, 0]);

  let looks = 0;
  const until: Fn = (ctx) => ctx.until("up", { every: MINUTE }, () => ++looks === 30);
  expect((await suspected(until))[1]).toBe(0);
});

test("executions that are lost at one point are detected, and the rest before the next one grows", async () => {
  const { sim, clock, journal } = new SimulatedJob(async () => {});
  await sim.start("job", {}, clock.now() + HOUR);
  const marked: boolean[] = [];
  for (let died = 0; died < 7; died++) {
    const { task } = (await sim.acquire("job")) as { task: { version: number } };
    marked.push(needsMark(journal, task.version));
    sim.kill("job");
  }
  expect(marked).toEqual([false, false, false, false, true, true, true]);
  const rests = [0, 1, 2, 3, 4, 5, 50].map((lost) => restAfter(lost) / MINUTE);
  expect(rests.slice(0, 3)).toEqual([0, 0, 0]);
  for (const [i, most] of [1, 2, 4, 60].entries()) {
    expect(rests[i + 3]).toBeGreaterThanOrEqual(most * 0.75);
    expect(rests[i + 3]).toBeLessThanOrEqual(most * 1.25);
  }
});

const paid = (ctx: Context) => ctx.until("paid", { every: HOUR }, () => false);
const late = (ctx: Context) => ctx.sleep("late", 2 * HOUR);

test.each<[suspected: boolean, what: string, Fn]>([
  [true, "has lost a race", (ctx) => ctx.race({ paid, late })],
  [true, "has lost within a branch that lost", (ctx) => ctx.race({ both: (c) => c.any({ paid, never: paid }), late })],
  [true, "took too long", (ctx) => ctx.timeout(2 * HOUR, paid).catch(() => {})],
  [false, "is open beside a race", (ctx) => Promise.all([paid(ctx), ctx.race({ soon: late, late })])],
])("losing its executions makes a job suspect: %j where its `until` %s", async (expected, _what, ends) => {
  const simulated = new SimulatedJob(async (ctx: Context) => {
    const ended = ends(ctx);
    await ctx.sleep("a month", 720 * HOUR);
    await ended;
  });
  const begun = simulated.clock.now();
  while (simulated.clock.now() < begun + 5 * HOUR) await simulated.next();
  expect(needsMark(simulated.journal, simulated.journal.version + 50)).toBe(expected);
});

test("a cancellation ends an `until`, so a job whose clean-up loses its executions is suspect", () => {
  const begun = { kind: "begin", of: "until", op: "paid", at: 0, v: 1 };
  const journal = (...events: object[]) => ({ events: events.map((event) => ({ event })) }) as unknown as Journal;
  expect(needsMark(journal(begun), 50)).toBe(false);
  expect(needsMark(journal(begun, { kind: "cancelled", op: "", v: 2 }), 50)).toBe(true);
});
