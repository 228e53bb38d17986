import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { replay } from "../../../testing/replay.ts";
import type { Death } from "../../../testing/simulation/plan.ts";
import { JOB_NAME, SimulatedJob } from "../../../testing/simulation/simulated-job.ts";
import { trial } from "../../../testing/simulation/trial.ts";
import { type Context, DAY, MINUTE, SECOND } from "../../author/context.ts";
import { MAX_RESULT } from "../../author/values.ts";
import type { Runnable } from "../runtime.ts";

type Fn = (ctx: Context) => Promise<unknown>;

const question = { message: "Go on?", requestedSchema: { type: "object" as const, properties: {} } };
const there = { kind: "there", args: { parse: (value: unknown) => value as object } };
const never = () => new Promise<never>(() => {});

// --- code that follows the rules --------------------------------------------------------------------------------------

const accepted: Record<string, [fn: Fn, result: unknown]> = {
  "plain fan-out": [(ctx) => Promise.all([3, 1, 2].map((n) => ctx.step("fetch", () => n))), [3, 1, 2]],
  "a fan-out with contexts": [
    (ctx) =>
      ctx.all(["a", "b", "c"], async (item, key) => {
        const text = await item.step("fetch", () => `text of ${key}`);
        await item.sleep("a while", SECOND);
        return item.step("title", () => text.toUpperCase());
      }),
    ["TEXT OF A", "TEXT OF B", "TEXT OF C"],
  ],
  "methods taken out of the context": [
    async ({ step, sleep, jobName }) => {
      const name = await step("name", () => jobName);
      await sleep("a while", SECOND);
      return name;
    },
    JOB_NAME,
  ],
  loops: [
    async (ctx) => {
      const results: number[] = [];
      for (let i = 0; i < 3; i++) {
        results.push(await ctx.step("a", () => i));
        await ctx.sleep("pause", SECOND);
        results.push(...(await Promise.all([ctx.step("b", () => i), ctx.step("c", () => i)])));
      }
      return results;
    },
    [0, 0, 0, 1, 1, 1, 2, 2, 2],
  ],
  "loops side by side, with names of their own": [
    async (ctx) => {
      const loop = async (name: string, ms: number) => {
        for (let i = 0; i < 3; i++) await ctx.sleep(name, ms);
      };
      await Promise.all([loop("quick", 10), loop("slow", 35), loop("odd", 20)]);
      return "done";
    },
    "done",
  ],
  "a loop beside a step in the background": [
    async (ctx) => {
      const note = ctx.step("note", () => "noted");
      await ctx.sleep("a while", SECOND);
      for (let i = 0; i < 3; i++) await ctx.step("work", () => i);
      return note;
    },
    "noted",
  ],
  "flows with names of their own": [
    (ctx) => {
      const flow = async (name: string, ms: number) => {
        await ctx.sleep(`${name} sleeps`, ms);
        return ctx.step(`${name} works`, () => name);
      };
      return Promise.all([flow("a", 30), flow("b", 10), flow("c", 20)]);
    },
    ["a", "b", "c"],
  ],
  "one job awaited twice": [
    async (ctx) => {
      const job = await ctx.start(there, {});
      return Promise.all([ctx.await(job), ctx.await(job)]);
    },
    [{ days: 3 }, { days: 3 }],
  ],
  "several questions at once, behind helpers": [
    async (ctx) => {
      const behind = async (ask: () => Promise<unknown>, depth = 3): Promise<unknown> =>
        depth === 0 ? await ask() : await behind(ask, depth - 1);
      ctx.progress("begun");
      const first = ctx.ask("first", question);
      const second = ctx.ask("second", question);
      const answers = [await behind(() => second)];
      ctx.progress("second answered");
      answers.push(await first);
      answers.push(await behind(() => ctx.ask("third", question)));
      return answers.length;
    },
    3,
  ],
  "deeply nested helpers, and awaits of resolved promises": [
    async (ctx) => {
      const behind = async (depth: number): Promise<number> =>
        depth === 0 ? await ctx.step("deep", () => 1) : await behind(depth - 1);
      let sum = 0;
      for (let i = 0; i < 1_000; i++) sum += await Promise.resolve(i);
      return sum + (await behind(200));
    },
    499_501,
  ],
  "a caught error of a step": [
    async (ctx) => {
      try {
        return await ctx.step("fail", () => Promise.reject(new TypeError("no such thing")));
      } catch (error) {
        return `${error}`;
      }
    },
    "TypeError: no such thing",
  ],
};

test.each(Object.entries(accepted))(
  "%s: the result is the same wherever the worker dies",
  async (_what, [fn, result]) => {
    const answers = { first: { n: 1 }, second: { n: 2 }, third: { n: 3 } };
    const outcome = await replay(fn, {}, { answers, jobs: { there: { days: 3 } }, runs: 80 });
    expect(outcome.result).toEqual(result);
  },
);

test("an error of the key function is an error like any other", async () => {
  const { result } = await replay(async (ctx: Context) => {
    const key = () => {
      throw new Error("no key");
    };
    await ctx.all([{}], async () => 1, { key }).catch(() => {});
    await ctx.sleep("on", SECOND);
    return ctx.step("then", () => "done");
  }, {});
  expect(result).toBe("done");
});

// --- code that breaks a rule ------------------------------------------------------------------------------------------

type Pause = (ms: number) => Promise<void>;

const unsure =
  /^"title" is called again, and its place among the calls of that name cannot be told: it may depend on what ends first\. Give each/;
const foreign =
  /after an await of something that is not ctx's|waits for something that is not ctx's|run again from its records/;

let looks = 0;
const refused: Record<string, [words: RegExp, fn: (ctx: Context, pause: Pause) => Promise<unknown>]> = {
  "chains of the same names": [
    unsure,
    (ctx, pause) =>
      Promise.all(
        [1, 2].map(async (n) => {
          await ctx.step("fetch", () => pause(n));
          return ctx.step("title", () => n);
        }),
      ),
  ],
  "flows that both use a name": [
    unsure,
    (ctx, pause) => {
      const flow = async (name: string, n: number) => {
        await ctx.step(name, () => pause(n));
        await ctx.sleep(`${name} sleeps`, 5);
        return ctx.step("title", () => n);
      };
      return Promise.all([flow("a", 1), flow("b", 2)]);
    },
  ],
  "a pool over one list": [
    unsure,
    (ctx, pause) => {
      const list = [1, 2, 1, 2][Symbol.iterator]();
      const worker = async () => {
        for (const n of list) await ctx.step("title", () => pause(n));
      };
      return Promise.all([worker(), worker()]);
    },
  ],
  "a loop before and after a slow background step is awaited": [
    unsure,
    async (ctx, pause) => {
      const audit = ctx.step("audit", () => pause(30));
      for (const n of [1, 2]) await ctx.step("title", () => n);
      await audit;
      for (const n of [3, 4]) await ctx.step("title", () => n);
    },
  ],
  "items that use the context around them": [
    unsure,
    (ctx, pause) =>
      ctx.all([1, 2], async (item, n) => {
        await item.step("fetch", () => pause(n));
        return ctx.step("title", () => n);
      }),
  ],
  "a call after a foreign await": [
    foreign,
    async (ctx, pause) => {
      await pause(1);
      return ctx.step("late", () => 1);
    },
  ],
  "an end after a foreign await": [
    foreign,
    async (ctx, pause) => {
      await ctx.step("first", () => 1);
      await pause(1);
    },
  ],
  "a foreign promise beside a step": [
    foreign,
    async (ctx, pause) => {
      await Promise.all([pause(1), ctx.step("beside", () => pause(2))]);
      return ctx.step("then", () => 1);
    },
  ],
  "a foreign promise in an item": [
    foreign,
    (ctx, pause) => ctx.all([1, 2], async (item, n) => (n === 1 ? pause(n) : item.step("beside", () => pause(n)))),
  ],
  "a sleep in a step": [
    /ctx\.sleep\("inside"\) was called inside of a step \("outer"/,
    (ctx) => ctx.step("outer", () => ctx.sleep("inside", MINUTE)),
  ],
  "a sleep in a step, later": [
    /ctx\.sleep\("inside"\) was called inside of a step \("outer"/,
    (ctx, pause) =>
      ctx.step("outer", async () => {
        await pause(1);
        await ctx.sleep("inside", MINUTE).catch(() => {});
        return "caught";
      }),
  ],
  "a variable that a step changes": [
    /^run again from its records, the function returned something else at total\. What may differ/,
    async (ctx) => {
      let total = 0;
      await ctx.step("add", () => {
        total += 5;
      });
      return { total };
    },
  ],
  "a random number outside of steps": [
    /^randomInt\(\) of node:crypto was called outside of a step at .*determinism\.test\.ts:\d+/,
    async (ctx) => ctx.step(`0.${randomInt(2 ** 40)}`, () => 1),
  ],
  "a name that is another one each time": [
    /^run again from its records, the function did something else: step "look \d+" was recorded here, "look \d+" came\. What may/,
    async (ctx) => ctx.step(`look ${++looks}`, () => 1),
  ],
  "an endless wait": [/waits for something that is not ctx's/, never],
  "a wait for an abandoned branch": [
    /waits for something that is not ctx's, or for a branch that was given up/,
    async (ctx) => {
      let lost = never();
      await ctx.race({
        won: (branch) => branch.step("won", () => 1),
        lost: (branch) => (lost = branch.sleep("lost", DAY) as Promise<never>),
      });
      return lost;
    },
  ],
  "a value that JSON cannot hold": [/^step "now" returned a Date: return/, (ctx) => ctx.step("now", () => new Date())],
  "a result that is too large": [
    /^step "all" returned \d+ bytes of JSON; up to \d+ are stored\. Put the data/,
    (ctx) => ctx.step("all", () => "x".repeat(MAX_RESULT)),
  ],
  "a long name": [
    /^ctx\.step: its name must be a text of 1 to 200 characters, and has 201: "n{60}…" at replay\/determinism\.test\.ts:\d+\. Shorten/,
    (ctx) => ctx.step("n".repeat(201), () => 1),
  ],
  "no name": [/^ctx\.step: its name must be a text of 1 to 200 characters/, (ctx) => ctx.step("", () => 1)],
  "one key twice": [/^ctx\.all: two items have the key "a"\. Give each/, (ctx) => ctx.all(["a", "a"], async () => 1)],
  "items without keys": [/^ctx\.all: items other than strings/, (ctx) => ctx.all([{}], async () => 1)],
  "a concurrency that is not a number": [
    /^ctx\.all: concurrency is NaN; it/,
    (ctx) => ctx.all(["a"], async () => 1, { concurrency: Number.NaN }),
  ],
  "a race without branches": [/^ctx\.race: it has no branches/, (ctx) => ctx.race({})],
  "a sleep until NaN": [/^ctx\.sleep\("s"\): until is NaN/, (ctx) => ctx.sleep("s", Number.NaN)],
  "looks without a pause": [/^ctx\.until\("u"\): every is 0/, (ctx) => ctx.until("u", { every: 0 }, () => true)],
  "a promise in place of a function": [
    /^ctx\.step\("fetch"\) takes a function that does it, and got a promise: write \(\) => …/,
    (ctx) => ctx.step("fetch", Promise.resolve(1) as never),
  ],
  "a question without a form": [
    /^ctx\.ask\("go on"\) takes \{ message: "…", schema: z\.object/,
    (ctx) => ctx.ask("go on", { message: "Go on?" } as never),
  ],
  "a start of something other than a job": [
    /^ctx\.start takes a definition, as defineDurableTool and defineJob make it/,
    (ctx) => ctx.start({ kind: "there" } as never, {}),
  ],
  "a name that no job has": [/^ctx\.await\(".*"\): there is no such job/, (ctx) => ctx.await("nobody")],
};

test.each(Object.entries(refused))("%s: refused with a message that says why", async (_what, [words, fn]) => {
  for (const [one, two] of [
    [10, 50],
    [50, 10],
    [10, 10],
    [0, 30],
    [70_000, 0],
  ] as const) {
    const simulated: SimulatedJob = new SimulatedJob((ctx) =>
      fn(ctx, (n) => simulated.clock.pause(n === 1 ? one : two)),
    );
    const outcome = await simulated.toEnd();
    expect(outcome).toMatchObject({
      kind: "failed",
      error: { name: "NondeterminismError", message: expect.stringMatching(words) },
    });
  }
});

test("a difference that a module's cache makes is not taken for changed code", async () => {
  let cache: unknown;
  const simulated = new SimulatedJob(async (ctx: Context) => {
    cache ??= await ctx.step("load", () => 1);
    return cache;
  });
  expect(await simulated.toEnd()).toMatchObject({
    kind: "failed",
    error: {
      message: expect.stringMatching(
        /^run again from its records, the function did something else: step "load" was recorded here, the function ended\. .*\(a cache/,
      ),
    },
  });
});

test("a rule broken in the first run fails the job, even if its worker dies before it reports that", async () => {
  const fn: Fn = async (ctx) => {
    const flow = async (name: string) => {
      await ctx.step(name, () => 1);
      return ctx.step("title", () => name);
    };
    // The outcomes after the sleep are recorded in one batch, and handing over the first of them breaks the rule.
    for (let i = 0; i < 4; i++) await ctx.step("before", () => i);
    await ctx.sleep("first", SECOND);
    await Promise.all([flow("a"), flow("b"), ctx.step("c", () => 1), ctx.step("d", () => 1)]);
  };
  const run = (deaths: Death[]) => trial(() => fn as unknown as Runnable, {}, {}, { deaths, isWarm: false });
  const { requests } = await run([]);
  for (let at = 1; at <= requests; at++) {
    for (const how of ["before", "after", "alone"] as const) {
      expect((await run([{ at, how }])).error, `${how} ${at}`).toMatchObject({ name: "NondeterminismError" });
    }
  }
});
