/** Items and branches clean up after a cancellation and after the deadline before their group ends. */
import { expect, test } from "vitest";
import { replay } from "../../../testing/replay.ts";
import type { Plan } from "../../../testing/simulation/plan.ts";
import { SimulatedJob } from "../../../testing/simulation/simulated-job.ts";
import { trial } from "../../../testing/simulation/trial.ts";
import { type Context, DAY, HOUR, type JobContext, MINUTE, SECOND } from "../../author/context.ts";
import type { Runnable } from "../runtime.ts";

/** Waits until it is told, and cleans up. */
async function releases(ctx: Context): Promise<void> {
  await ctx.step("reserve", () => 1);
  try {
    await ctx.callback("sent").result;
  } catch (error) {
    await ctx.cleanup(async (ctx) => {
      await ctx.step("release", () => 2);
      await ctx.step("note", () => 3);
    });
    throw error;
  }
}

const waits = (ctx: Context) => ctx.callback("sent").result;

const groups: Record<string, [code: (ctx: Context) => Promise<unknown>, releasing: string[]]> = {
  timeout: [(ctx) => ctx.timeout(2 * DAY, releases), ["timeout/work"]],
  "race, of which another branch ends first": [(ctx) => ctx.race({ waits, releases }), ["race/releases"]],
  "any, of which each branch cleans up": [(ctx) => ctx.any({ waits, a: releases, b: releases }), ["any/a", "any/b"]],
  "any, of which a branch has failed before": [
    (ctx) => ctx.any({ failed: () => Promise.reject(new Error("no")), releases }),
    ["any/releases"],
  ],
  all: [(ctx) => ctx.all([0, 1, 2], (c, i) => (i === 0 ? waits(c) : releases(c))), ["all/1", "all/2"]],
  "timeout within an all": [
    (ctx) => ctx.all(["a", "b"], (c) => c.timeout(2 * DAY, releases)),
    ["all/a/timeout/work", "all/b/timeout/work"],
  ],
};

const cases = Object.entries(groups).map(([what, [code, releasing]]) => [what, code, releasing] as const);

test.each(cases)(
  "at the deadline, all clean up in a ctx.%s, which then throws DeadlineExceeded",
  async (_what, code, releasing) => {
    await expect(replay(code, {}, { deadline: HOUR, runs: 40 })).rejects.toMatchObject({ name: "DeadlineExceeded" });
    const job = new SimulatedJob(code, { deadline: HOUR });
    expect(await job.toEnd()).toMatchObject({ kind: "failed", error: { name: "DeadlineExceeded" } });
    expect(job.paths()).toEqual(
      expect.arrayContaining(releasing.flatMap((path) => [`${path}/cleanup/release`, `${path}/cleanup/note`])),
    );
  },
);

test.each(cases)(
  "after a cancellation, all clean up in a ctx.%s, which then throws JobCancelled",
  async (_what, code, releasing) => {
    const end = await trial(
      () => code as Runnable,
      {},
      {},
      { deaths: [], isWarm: true, cancel: { after: HOUR, noticeDelay: 0 } },
    );
    expect(end).toMatchObject({ outcome: "failed", error: { name: "JobCancelled" } });
    const done = end.records.map(({ event }) => event.op);
    expect(done).toEqual(
      expect.arrayContaining(releasing.flatMap((path) => [`${path}/cleanup/release`, `${path}/cleanup/note`])),
    );
  },
);

test("at the deadline, a branch that returns what it has wins over those that throw", async () => {
  const partial = async (ctx: Context) => {
    const found = [await ctx.step("find", () => "first")];
    await ctx.callback("sent").result.catch(() => {});
    found.push(await ctx.cleanup((ctx) => ctx.step("close", () => "closed")));
    return found;
  };
  const code = async (ctx: Context) => [
    await ctx.timeout(2 * DAY, partial),
    await ctx.cleanup((ctx) => ctx.timeout(MINUTE, (c) => c.step("after", () => "after"))),
  ];
  const { result } = await replay(code, {}, { deadline: HOUR });
  expect(result).toEqual([["first", "closed"], "after"]);
});

test("a group that begins in the clean-up ends with its first item or branch", async () => {
  const code = async (ctx: Context) => {
    try {
      await ctx.callback("sent").result;
    } catch (error) {
      const { winner } = await ctx.cleanup((ctx) =>
        ctx.race({ soon: (c) => c.sleep("soon", SECOND), late: (c) => c.sleep("late", 9 * SECOND) }),
      );
      const failed = async (c: Context, i: number) => {
        await c.sleep("for", (i + 1) * SECOND);
        if (i === 0) throw error;
        await c.step("not done", () => 1);
      };
      const both = ctx.cleanup((ctx) => ctx.all([0, 1], failed), { name: "both" });
      const heard = await both.catch((each) => [each === error, each.givenUp]);
      return [winner, heard];
    }
  };
  const { result } = await replay(code, {}, { deadline: HOUR });
  expect(result).toEqual(["soon", [true, ["1"]]]);
});

test("a ctx.all that a cancellation or the deadline ends names the items that it did not begin", async () => {
  const each = (ctx: Context, i: number) => (i < 2 ? ctx.sleep("a while", MINUTE) : releases(ctx));
  const all = (ctx: Context) =>
    ctx.all([0, 1, 2, 3, 4, 5], each, { concurrency: 2 }).catch((error) => [error.name, error.givenUp]);
  expect((await replay(all, {}, { deadline: HOUR })).result).toEqual(["DeadlineExceeded", ["4", "5"]]);
});

test("after a cancellation or the deadline, ctx.allSettled begins no further items", async () => {
  const begun: number[] = [];
  const each = async (ctx: Context, i: number) => {
    if (i < 2) return ctx.sleep("a while", MINUTE);
    begun.push(i);
    return ctx.callback("sent").result;
  };
  const settled = async (ctx: Context) => {
    const ends = await ctx.allSettled([0, 1, 2, 3, 4, 5], each, { concurrency: 2 });
    return ends.map((end) => (end.status === "rejected" ? (end.reason as Error).name : end.status));
  };
  const late = Array<string>(4).fill("DeadlineExceeded");
  expect((await replay(settled, {}, { deadline: HOUR })).result).toEqual(["fulfilled", "fulfilled", ...late]);
  expect([...new Set(begun)]).toEqual([2, 3]);
});

test("a cancelled function that has broken a rule fails with it, whenever a worker dies", async () => {
  const breaks = (clock: { pause(ms: number): Promise<void> }) => async (ctx: JobContext<object>) => {
    void ctx.callback("never").result;
    await Promise.race([5, 20].map((ms) => ctx.step(`takes ${ms} ms`, () => clock.pause(ms))));
    return ctx.continueAs({});
  };
  for (let at = 1; at <= 14; at++) {
    for (const after of [6, 12, 18, 24, 30]) {
      const plan: Plan = {
        deaths: [{ at, how: "after" }],
        isWarm: true,
        latency: () => 3,
        cancel: { after, noticeDelay: 1_000 },
      };
      const { outcome } = await trial((clock) => breaks(clock) as unknown as Runnable, {}, {}, plan);
      expect(outcome, JSON.stringify(plan)).toBe("failed");
    }
  }
});
