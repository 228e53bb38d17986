import { expect, test } from "vitest";
import { JOB, Passes } from "../../infra/testing/passes.ts";
import { replayed } from "../../infra/testing/replayed.ts";
import { type Death, trial } from "../../infra/testing/trial.ts";
import { type Context, DAY, HOUR, type Log, MINUTE, RuleBroken, SECOND } from "./context.ts";
import { LeaseLost, type Runnable } from "./replay.ts";
import { MAX_RESULT } from "./values.ts";

type Fn = (ctx: Context) => Promise<unknown>;

const question = { message: "Go on?", requestedSchema: { type: "object" as const, properties: {} } };
const yes = { action: "accept", content: { yes: true } };
const there = { kind: "there", args: { parse: (value: unknown) => value as object } };
const never = () => new Promise<never>(() => {});

// --- what is right ----------------------------------------------------------------------------------------------------

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
  "what is taken out of its context": [
    async ({ step, sleep, jobName }) => {
      const name = await step("name", () => jobName);
      await sleep("a while", SECOND);
      return name;
    },
    JOB,
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
  "one job awaited in two places": [
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
  "helpers of many helpers, and what is there already": [
    async (ctx) => {
      const behind = async (depth: number): Promise<number> =>
        depth === 0 ? await ctx.step("deep", () => 1) : await behind(depth - 1);
      let sum = 0;
      for (let i = 0; i < 1_000; i++) sum += await Promise.resolve(i);
      return sum + (await behind(200));
    },
    499_501,
  ],
  "a step's error that is caught": [
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

test.each(Object.entries(accepted))("%s: the same however its worker dies", async (_what, [fn, result]) => {
  const answers = { first: { n: 1 }, second: { n: 2 }, third: { n: 3 } };
  const outcome = await replayed(fn, {}, { answers, jobs: { there: { days: 3 } }, runs: 80 });
  expect(outcome.result).toEqual(result);
});

test("an error of a function that gives keys is one like any other", async () => {
  const { result } = await replayed(async (ctx: Context) => {
    const key = () => {
      throw new Error("no key");
    };
    await ctx.all([{}], async () => 1, { key }).catch(() => {});
    await ctx.sleep("on", SECOND);
    return ctx.step("then", () => "done");
  }, {});
  expect(result).toBe("done");
});

// --- what breaks a rule -----------------------------------------------------------------------------------------------

type Pause = (ms: number) => Promise<void>;

const unsure =
  /^"title" is called twice in an order that depends on what ends first\. Give each call a name of its own, or/;
const foreign =
  /after an await of something that is not ctx's|waits for something that is not ctx's|run again from its records/;

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
  "items that use the context around them": [
    unsure,
    (ctx, pause) =>
      ctx.all([1, 2], async (item, n) => {
        await item.step("fetch", () => pause(n));
        return ctx.step("title", () => n);
      }),
  ],
  "a call after something of its own": [
    foreign,
    async (ctx, pause) => {
      await pause(1);
      return ctx.step("late", () => 1);
    },
  ],
  "an end after something of its own": [
    foreign,
    async (ctx, pause) => {
      await ctx.step("first", () => 1);
      await pause(1);
    },
  ],
  "something of its own beside a step": [
    foreign,
    async (ctx, pause) => {
      await Promise.all([pause(1), ctx.step("beside", () => pause(2))]);
      return ctx.step("then", () => 1);
    },
  ],
  "something of its own in an item": [
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
    /^run again from its records, the function did something else: step "0\.\d+" was recorded here, "0\.\d+" came\. What may/,
    async (ctx) => ctx.step(`${Math.random()}`, () => 1),
  ],
  "a wait without end": [/waits for something that is not ctx's/, never],
  "a wait for a branch that was given up": [
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
  "a value that does not survive": [/^step "now" returned a Date: return/, (ctx) => ctx.step("now", () => new Date())],
  "a result that is too large": [
    /^step "all" returned \d+ bytes of JSON; up to \d+ are stored\. Put the data/,
    (ctx) => ctx.step("all", () => "x".repeat(MAX_RESULT)),
  ],
  "no name": [/^ctx\.step: its name must be a text of 1 to 200 characters/, (ctx) => ctx.step("", () => 1)],
  "one key twice": [/^ctx\.all: two items have the key "a"\. Give each/, (ctx) => ctx.all(["a", "a"], async () => 1)],
  "items without keys": [/^ctx\.all: items that are no strings/, (ctx) => ctx.all([{}], async () => 1)],
  "no places": [
    /^ctx\.all: concurrency is NaN; it/,
    (ctx) => ctx.all(["a"], async () => 1, { concurrency: Number.NaN }),
  ],
  "a race of nobody": [/^ctx\.race: it has no branches/, (ctx) => ctx.race({})],
  "a sleep until never": [/^ctx\.sleep\("s"\): until is NaN/, (ctx) => ctx.sleep("s", Number.NaN)],
  "looks all the time": [/^ctx\.until\("u"\): every is 0/, (ctx) => ctx.until("u", { every: 0 }, () => true)],
  "a request in place of a function": [
    /^ctx\.step\("fetch"\) takes a function that does it, and got a promise: write \(\) => …/,
    (ctx) => ctx.step("fetch", Promise.resolve(1) as never),
  ],
  "a question without a form": [
    /^ctx\.ask\("go on"\) takes \{ message: "…", requestedSchema: \{/,
    (ctx) => ctx.ask("go on", { message: "Go on?" } as never),
  ],
  "a start of what is no job": [
    /^ctx\.start takes a definition, as durableTool and defineJob make it/,
    (ctx) => ctx.start({ kind: "there" } as never, {}),
  ],
  "a job that is none": [/^ctx\.await\(".*"\): there is no such job/, (ctx) => ctx.await("nobody")],
};

test.each(Object.entries(refused))("%s: refused in words, whatever is fast", async (_what, [words, fn]) => {
  for (const [one, two] of [
    [10, 50],
    [50, 10],
    [10, 10],
    [0, 30],
    [70_000, 0],
  ] as const) {
    const passes: Passes = new Passes((ctx) => fn(ctx, (n) => passes.clock.pause(n === 1 ? one : two)));
    const outcome = await passes.toEnd();
    expect(outcome).toMatchObject({
      kind: "failed",
      error: { name: "RuleBroken", message: expect.stringMatching(words) },
    });
  }
});

test("a rule that was broken on a first run fails the job, wherever its worker dies before that is told", async () => {
  const fn: Fn = async (ctx) => {
    const flow = async (name: string) => {
      await ctx.step(name, () => 1);
      return ctx.step("title", () => name);
    };
    // Their outcomes are recorded at once, after the sleep, and the rule is broken when the first are handed over.
    for (let i = 0; i < 4; i++) await ctx.step("before", () => i);
    await ctx.sleep("first", SECOND);
    await Promise.all([flow("a"), flow("b"), ctx.step("c", () => 1), ctx.step("d", () => 1)]);
  };
  const run = (deaths: Death[]) => trial(() => fn as unknown as Runnable, {}, {}, { deaths, isWarm: false });
  const { requests } = await run([]);
  for (let at = 1; at <= requests; at++) {
    for (const how of ["before", "after", "alone"] as const) {
      expect((await run([{ at, how }])).error, `${how} ${at}`).toMatchObject({ name: "RuleBroken" });
    }
  }
});

// --- code that has changed --------------------------------------------------------------------------------------------

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
  "a sleep less": [
    'sleep "a day" was recorded here, the function ended',
    (ctx) => ctx.step("title", () => ran("title")),
  ],
  "a rule that it breaks": [
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
  "code changed under a job, %s: it is blocked until code that fits is back",
  async (_, [words, fn]) => {
    hasRun.length = 0;
    const passes = new Passes(titled);
    expect(await passes.pass()).toEqual({ kind: "asleep" });
    passes.code = fn as unknown as Runnable;
    for (const memory of ["warm", "cold"]) {
      if (memory === "cold") passes.forget();
      passes.history.version = 0;
      const outcome = await passes.next();
      expect(outcome.kind).toBe("blocked");
      if (words.startsWith("after")) continue;
      expect(outcome).toEqual({ kind: "blocked", reason: words });
    }
    expect(hasRun).toEqual([]);
    expect(passes.paths()).toEqual(["title", "a day"]);
    passes.code = titled as unknown as Runnable;
    expect(await passes.toEnd()).toEqual({ kind: "complete", value: "the title" });
  },
);

test("a race that other code decides otherwise is blocked", async () => {
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
  const passes = new Passes(race("a", "b"));
  expect(await passes.pass()).toEqual({ kind: "asleep" });
  passes.code = race("c", "b") as unknown as Runnable;
  const blocked = await passes.next();
  expect(blocked).toMatchObject({ kind: "blocked", reason: expect.stringContaining('"race/a/go" was recorded here') });
});

test("code that goes on further than it did fits", async () => {
  const passes = new Passes(titled);
  await passes.pass();
  passes.code = (async (ctx: Context) => [
    await titled(ctx),
    await ctx.step("more", () => "more"),
  ]) as unknown as Runnable;
  expect(await passes.toEnd()).toEqual({ kind: "complete", value: ["the title", "more"] });
});

// --- live as in a replay ----------------------------------------------------------------------------------------------

test("the function sees live what a replay shows, values and errors alike", async () => {
  const values = [
    null,
    undefined,
    0,
    "",
    [1, [2]],
    { a: { b: null } },
    "__INF__",
    { __type: "error", message: "no error" },
  ];
  const seen: unknown[][] = [];
  const passes = new Passes(async (ctx: Context) => {
    const now: unknown[] = [];
    seen.push(now);
    for (const [i, value] of values.entries()) now.push(await ctx.step(`value ${i}`, () => value));
    const failing = Object.assign(new RangeError("too far"), { code: "EFAR" });
    await ctx
      .step("fail", () => Promise.reject(failing))
      .catch((error) => {
        now.push(
          error instanceof Error,
          error.name,
          error.message,
          error.code,
          Object.keys(error),
          error instanceof RangeError,
        );
      });
    for (const name of ["once", "twice"]) await ctx.sleep(name, SECOND);
  });
  await passes.pass();
  const live = seen[0];
  await passes.next();
  passes.forget();
  await passes.toEnd();
  expect(live).toEqual([...values, true, "RangeError", "too far", "EFAR", ["code"], false]);
  expect(seen.length).toBeGreaterThan(3);
  for (const each of seen) expect(each).toStrictEqual(live);
});

test("what a function does to a value or its arguments it does not find done in the next pass", async () => {
  const passes = new Passes(
    async (ctx: Context, { tags }: { tags: string[] }) => {
      const list = await ctx.step("list", () => [1]);
      list.push(2);
      tags.push("more");
      await ctx.sleep("once", SECOND);
      await ctx.sleep("twice", SECOND);
      return { list, tags };
    },
    { args: { tags: ["one"] } },
  );
  expect(await passes.toEnd()).toEqual({ kind: "complete", value: { list: [1, 2], tags: ["one", "more"] } });
});

test("what the function logs and counts is not repeated by replays", async () => {
  const said: string[] = [];
  let counted = 0;
  const log: Log = { debug() {}, info: (message) => said.push(message), warn() {}, error() {} };
  const metrics = { count: () => counted++, observe() {} };
  const passes = new Passes(
    async (ctx: Context) => {
      const { log, metrics } = ctx;
      log.info("begun");
      metrics.count("begun");
      for (const name of ["once", "twice", "thrice"]) {
        await ctx.sleep(name, SECOND);
        await ctx.step(`step ${name}`, () => 1);
        log.info(name);
      }
    },
    { log, metrics },
  );
  await passes.toEnd();
  expect(said).toEqual(["begun", "once", "twice", "thrice"]);
  expect(counted).toBe(1);
});

// --- the order of outcomes --------------------------------------------------------------------------------------------

test.each(["Promise.race", "ctx.race"])("who has won %s stays the winner, wherever the worker dies", async (kind) => {
  const fn = (pause: Pause) => async (ctx: Context) => {
    const a = (on: Context) => on.step("a", () => pause(3));
    const b = (on: Context) => on.step("b", () => pause(3));
    const winner =
      kind === "ctx.race"
        ? (await ctx.race({ a, b })).winner
        : await Promise.race([a(ctx).then(() => "a"), b(ctx).then(() => "b")]);
    await ctx.step("seal", () => winner);
    await ctx.sleep("a day", DAY);
    return [winner, await ctx.step("tell", () => winner)];
  };
  const run = (deaths: Death[], isWarm: boolean) =>
    trial((clock) => fn((ms) => clock.pause(ms)) as unknown as Runnable, {}, {}, { deaths, isWarm });
  const { requests } = await run([], true);
  for (let at = 1; at <= requests; at++) {
    for (const how of ["before", "after", "alone"] as const) {
      const { value, records } = await run([{ at, how }], at % 2 === 0);
      const [winner, told] = value as [string, string];
      const sealed = records.find(({ event }) => event.op === "seal")?.event;
      expect([told, sealed], `${how} ${at}`).toMatchObject([winner, { value: winner }]);
    }
  }
});

test("what was heard first stays first for a step that has begun with it, also where an earlier answer is heard of later", async () => {
  const told: [winner: string, key: string][] = [];
  const passes: Passes = new Passes(async (ctx: Context) => {
    const winner = await Promise.race([
      ctx.ask("one", question).then(() => "one"),
      ctx.ask("two", question).then(() => "two"),
    ]);
    await ctx.step("tell", ({ idempotencyKey }) => {
      told.push([winner, idempotencyKey]);
      if (told.length > 1) return winner;
      passes.sim.kill(JOB);
      passes.stop.abort();
      return never();
    });
    return winner;
  });
  await passes.pass();
  passes.unheard.add(`${JOB}:e1`);
  await passes.clock.until(passes.clock.pause(10));
  passes.answer("one", yes);
  await passes.clock.until(passes.clock.pause(10));
  passes.answer("two", yes);
  await expect(passes.pass()).rejects.toThrow(LeaseLost);
  passes.unheard.clear();
  passes.forget();
  expect(await passes.toEnd()).toEqual({ kind: "complete", value: "two" });
  expect(told).toHaveLength(2);
  expect(told[1]).toEqual(told[0]);
});

test("an answer is heard while a long step runs beside the question", async () => {
  let then = 0;
  const passes: Passes = new Passes(async (ctx: Context) => {
    const work = ctx.step("work", () => passes.clock.pause(HOUR));
    await ctx.ask("go on", question);
    await ctx.step("then", () => {
      then = passes.clock.now();
    });
    await work;
  });
  const begun = passes.clock.now();
  passes.clock.after(MINUTE, () => passes.answer("go on", yes));
  expect(await passes.toEnd()).toMatchObject({ kind: "complete" });
  expect(then - begun).toBeLessThan(2 * MINUTE);
});

// --- its end ----------------------------------------------------------------------------------------------------------

test("a step hears that its race is lost, that its job's lease is, and that its job has no more time", async () => {
  const aborted: string[] = [];
  const long = (ctx: Context, name: string) =>
    ctx.step(name, ({ signal }) => {
      signal.addEventListener("abort", () => aborted.push(name));
      return never();
    });
  const race = new Passes((ctx: Context) =>
    ctx.race({ won: (branch) => branch.step("won", () => 1), lost: (branch) => long(branch, "race") }),
  );
  expect(await race.toEnd()).toEqual({ kind: "complete", value: { winner: "won", value: 1 } });
  expect(aborted).toEqual(["race"]);

  const lost: Passes = new Passes((ctx: Context) =>
    Promise.all([long(ctx, "lease"), ctx.step("next", () => lost.sim.kill(JOB))]),
  );
  await expect(lost.pass()).rejects.toThrow(LeaseLost);
  expect(aborted).toEqual(["race", "lease"]);

  const late = new Passes((ctx: Context) => long(ctx, "deadline"), { deadline: MINUTE });
  await expect(late.pass()).rejects.toThrow("no longer run here");
  expect(aborted).toEqual(["race", "lease", "deadline"]);
});

test("a step that has ended, or has failed, is told nothing when its job sleeps or ends", async () => {
  const signals: AbortSignal[] = [];
  const passes = new Passes(async (ctx: Context) => {
    await ctx.step("well", ({ signal }) => signals.push(signal));
    const ill = ({ signal }: { signal: AbortSignal }) => {
      signals.push(signal);
      throw new Error("ill");
    };
    await ctx.step("ill", ill, { retry: false }).catch(() => {});
    await ctx.sleep("a while", HOUR);
  });
  expect(await passes.toEnd()).toMatchObject({ kind: "complete" });
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
});

test("a branch that was given up goes no further", async () => {
  const done: string[] = [];
  const passes: Passes = new Passes(async (ctx: Context) => {
    await ctx.race({
      quick: (branch) => branch.sleep("quick", SECOND),
      slow: async (branch) => {
        await branch.step("slow", () => passes.clock.pause(MINUTE));
        done.push("slow");
        await branch.step("after slow", () => done.push("after slow"));
      },
    });
    await ctx.step("work", () => passes.clock.pause(HOUR));
  });
  expect(await passes.toEnd()).toMatchObject({ kind: "complete" });
  expect(done).toEqual([]);
});

test("the end of the function waits for steps in the background, and for nothing else", async () => {
  let isNoted = false;
  const passes: Passes = new Passes(async (ctx: Context) => {
    void ctx.sleep("for ever", 300 * DAY);
    void ctx.step("note", async () => {
      await passes.clock.pause(MINUTE);
      isNoted = true;
    });
    return "done";
  });
  expect(await passes.toEnd()).toEqual({ kind: "complete", value: "done" });
  expect(isNoted).toBe(true);
});

test("a rule that is broken is not caught", async () => {
  const passes = new Passes(async (ctx: Context) => {
    try {
      await ctx.step("now", () => new Date());
    } catch {
      return "caught";
    }
  });
  expect(await passes.toEnd()).toMatchObject({ kind: "failed", error: expect.any(RuleBroken) });
});
