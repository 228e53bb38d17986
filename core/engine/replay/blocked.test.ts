import { expect, test } from "vitest";
import { SimulatedJob } from "../../../testing/simulation/simulated-job.ts";
import { type Context, DAY } from "../../author/context.ts";
import type { Runnable } from "../runtime.ts";

type Fn = (ctx: Context) => Promise<unknown>;

const titled: Fn = async (ctx) => {
  const title = await ctx.step("title", () => "the title");
  await ctx.sleep("a day", DAY);
  return title;
};

const changes: Record<string, [words: string, fn: Fn]> = {
  "a step of another name": [
    'step "title" was recorded here, "summary" came',
    (ctx) => ctx.step("summary", () => ran("summary")),
  ],
  "a step before it": [
    'step "title" was recorded here, "check" came',
    async (ctx) => {
      await ctx.step("check", () => ran("check"));
      return titled(ctx);
    },
  ],
  "a call of another kind": [
    'step "title" was recorded here, sleep "title" came',
    async (ctx) => {
      await ctx.sleep("title", 1);
      return titled(ctx);
    },
  ],
  "no step": ['step "title" was recorded here, the function ended', async () => "nothing"],
  "one sleep less": [
    'sleep "a day" was recorded here, the function ended',
    (ctx) => ctx.step("title", () => ran("title")),
  ],
  "an error before it": [
    'step "title" was recorded here, the function threw: there is no config (at replay/blocked.test.ts:',
    async () => {
      throw new TypeError("there is no config");
    },
  ],
  "a broken rule": [
    "after an await of something that is not ctx's",
    async (ctx) => {
      await new Promise((resolve) => setTimeout(resolve, 1));
      return titled(ctx);
    },
  ],
};

const hasRun: string[] = [];
const ran = (what: string) => hasRun.push(what);

test.each(Object.entries(changes))(
  "a job whose code changed (%s) is blocked until fitting code is back",
  async (_, [words, fn]) => {
    hasRun.length = 0;
    const simulated = new SimulatedJob(titled);
    expect(await simulated.execute()).toEqual({ kind: "asleep" });
    simulated.code = fn as unknown as Runnable;
    for (const memory of ["warm", "cold"]) {
      if (memory === "cold") simulated.forget();
      simulated.journal.version = 0;
      const outcome = await simulated.next();
      expect(outcome.kind).toBe("blocked");
      if (words.startsWith("after")) continue;
      const reason = words.startsWith("step") && words.endsWith(":") ? expect.stringContaining(words) : words;
      expect(outcome).toEqual({ kind: "blocked", reason });
    }
    expect(hasRun).toEqual([]);
    expect(simulated.paths()).toEqual(["title", "a day"]);
    simulated.code = titled as unknown as Runnable;
    expect(await simulated.toEnd()).toEqual({ kind: "complete", value: "the title" });
  },
);

test("a job is blocked if changed code decides its race differently", async () => {
  const race =
    (first: string, second: string): Fn =>
    async (ctx) => {
      const { winner } = await ctx.race({
        [first]: (branch) => branch.step("go", () => 1),
        [second]: (branch) => branch.sleep("rest", DAY),
      });
      await ctx.sleep("a day", DAY);
      return winner;
    };
  const simulated = new SimulatedJob(race("a", "b"));
  expect(await simulated.execute()).toEqual({ kind: "asleep" });
  simulated.code = race("c", "b") as unknown as Runnable;
  const blocked = await simulated.next();
  expect(blocked).toMatchObject({ kind: "blocked", reason: expect.stringContaining('"race/a/go" was recorded here') });
});

test("a job is blocked, and says why, if a job whose result it has used was removed", async () => {
  const simulated = new SimulatedJob(async (ctx: Context) => {
    await ctx.await("child");
    await ctx.sleep("a day", DAY);
  });
  await simulated.startOther("child");
  await simulated.execute();
  simulated.sim.settle("child", "resolved");
  await simulated.next();
  simulated.sim.forget("child");
  simulated.forget();
  simulated.hasNews = false;
  const reason =
    'await "child" had ended when its outcome was used, but was removed since then: cancel this job and start it again';
  expect(await simulated.next()).toEqual({ kind: "blocked", reason });
});

test("code with further calls at its end still fits the journal", async () => {
  const simulated = new SimulatedJob(titled);
  await simulated.execute();
  simulated.code = (async (ctx: Context) => [
    await titled(ctx),
    await ctx.step("more", () => "more"),
  ]) as unknown as Runnable;
  expect(await simulated.toEnd()).toEqual({ kind: "complete", value: ["the title", "more"] });
});
