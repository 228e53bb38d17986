import { expect, test } from "vitest";
import type { Death } from "../../testing/simulation/plan.ts";
import { JOB_NAME, SimulatedJob } from "../../testing/simulation/simulated-job.ts";
import { trial } from "../../testing/simulation/trial.ts";
import { type Context, DAY, HOUR, type Log, MINUTE, NondeterminismError, SECOND } from "../author/context.ts";
import { decodeValue } from "../resonate/codec.ts";
import { journalEntryId, outputId } from "../resonate/ids.ts";
import { LeaseLost } from "./job-lease.ts";
import type { Runnable } from "./runtime.ts";

const question = { message: "Go on?", requestedSchema: { type: "object" as const, properties: {} } };
const yes = { action: "accept", content: { yes: true } };
type Pause = (ms: number) => Promise<void>;
const never = () => new Promise<never>(() => {});

test.each<[what: string, (ctx: Context) => Promise<unknown>]>([
  ["a step returns NaN", (ctx) => ctx.step("book", () => Number.NaN)],
  ["a step returns a Map", (ctx) => ctx.step("book", () => new Map())],
  ["a step returns a Date", (ctx) => ctx.step("book", () => ({ at: new Date(0) }), { retry: false })],
  ["a check finds a Date", (ctx) => ctx.until("book", { every: SECOND }, () => new Date(0))],
  ["an output is a Date", (ctx) => ctx.emit(new Date(0))],
])("if %s, the function can undo what it has done, and the failure says why", async (_what, act) => {
  const undone: string[] = [];
  const simulated = new SimulatedJob(async (ctx: Context) => {
    try {
      await act(ctx);
    } catch (error) {
      await ctx.step("undo", () => undone.push("booking"));
      throw error;
    }
  });
  const message = expect.stringMatching(/returned (NaN|a Map|a Date)/);
  expect(await simulated.toEnd()).toMatchObject({ kind: "failed", error: { name: "NondeterminismError", message } });
  expect(undone).toEqual(["booking"]);
});

test("arguments, results and errors that look like marks of the store are the same in a function and after it", async () => {
  const like = ["__INF__", "~__NEG_INF__", { __type: "error", message: "boom", code: 7 }];
  const value = { like, e: { __type: "aggregate_error", message: "m", errors: null } };
  const seen: unknown[] = [];
  const simulated = new SimulatedJob(
    async (ctx: Context, args: unknown) => {
      seen.push(args, await ctx.step("same", () => args));
      await ctx.emit(args);
      return args;
    },
    { args: value },
  );
  expect(await simulated.toEnd()).toEqual({ kind: "complete", value });
  for (const each of seen) expect(each).toEqual(value);
  const output = simulated.sim.get(outputId("job", 1));
  expect(decodeValue(output?.param ?? {})).toEqual(value);
});

test("a function sees the same values and errors at the first run and in replays", async () => {
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
  const simulated = new SimulatedJob(async (ctx: Context) => {
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
  await simulated.execute();
  const live = seen[0];
  await simulated.next();
  simulated.forget();
  await simulated.toEnd();
  expect(live).toEqual([...values, true, "RangeError", "too far", "EFAR", ["code"], false]);
  expect(seen.length).toBeGreaterThan(3);
  for (const each of seen) expect(each).toStrictEqual(live);
});

test("changes that a function makes to a value or its arguments do not reach the next execution", async () => {
  const simulated = new SimulatedJob(
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
  expect(await simulated.toEnd()).toEqual({ kind: "complete", value: { list: [1, 2], tags: ["one", "more"] } });
});

test("replays repeat no log lines and no metrics", async () => {
  const said: string[] = [];
  let counted = 0;
  const log: Log = { debug() {}, info: (message) => said.push(message), warn() {}, error() {} };
  const metrics = { count: () => counted++, observe() {} };
  const simulated = new SimulatedJob(
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
  await simulated.toEnd();
  expect(said).toEqual(["begun", "once", "twice", "thrice"]);
  expect(counted).toBe(1);
});

// --- the order of outcomes --------------------------------------------------------------------------------------------

test.each(["Promise.race", "ctx.race"])("the winner of %s stays the winner, wherever the worker dies", async (kind) => {
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

test("an answer that a step has begun with stays the first, even if news of an earlier answer arrives later", async () => {
  const told: [winner: string, key: string][] = [];
  const simulated: SimulatedJob = new SimulatedJob(async (ctx: Context) => {
    const winner = await Promise.race([
      ctx.ask("one", question).then(() => "one"),
      ctx.ask("two", question).then(() => "two"),
    ]);
    await ctx.step("tell", ({ idempotencyKey }) => {
      told.push([winner, idempotencyKey]);
      if (told.length > 1) return winner;
      simulated.sim.kill(JOB_NAME);
      simulated.stop.abort();
      return never();
    });
    return winner;
  });
  await simulated.execute();
  simulated.alwaysPending.add(journalEntryId(JOB_NAME, 1));
  await simulated.clock.until(simulated.clock.pause(10));
  simulated.answer("one", yes);
  await simulated.clock.until(simulated.clock.pause(10));
  simulated.answer("two", yes);
  await expect(simulated.execute()).rejects.toThrow(LeaseLost);
  simulated.alwaysPending.clear();
  simulated.forget();
  expect(await simulated.toEnd()).toEqual({ kind: "complete", value: "two" });
  expect(told).toHaveLength(2);
  expect(told[1]).toEqual(told[0]);
});

test("an answer reaches the function while a long step runs beside the question", async () => {
  let then = 0;
  const simulated: SimulatedJob = new SimulatedJob(async (ctx: Context) => {
    const work = ctx.step("work", () => simulated.clock.pause(HOUR));
    await ctx.ask("go on", question);
    await ctx.step("then", () => {
      then = simulated.clock.now();
    });
    await work;
  });
  const begun = simulated.clock.now();
  simulated.clock.after(MINUTE, () => simulated.answer("go on", yes));
  expect(await simulated.toEnd()).toMatchObject({ kind: "complete" });
  expect(then - begun).toBeLessThan(2 * MINUTE);
});

// --- the end of an execution ------------------------------------------------------------------------------------------

test("a step's signal fires when its branch loses a race, when the lease is lost, and at the job's deadline", async () => {
  const aborted: string[] = [];
  const long = (ctx: Context, name: string) =>
    ctx.step(name, ({ signal }) => {
      signal.addEventListener("abort", () => aborted.push(name));
      return never();
    });
  const race = new SimulatedJob((ctx: Context) =>
    ctx.race({ won: (branch) => branch.step("won", () => 1), lost: (branch) => long(branch, "race") }),
  );
  expect(await race.toEnd()).toEqual({ kind: "complete", value: { winner: "won", value: 1 } });
  expect(aborted).toEqual(["race"]);

  const lost: SimulatedJob = new SimulatedJob((ctx: Context) =>
    Promise.all([long(ctx, "lease"), ctx.step("next", () => lost.sim.kill(JOB_NAME))]),
  );
  await expect(lost.execute()).rejects.toThrow(LeaseLost);
  expect(aborted).toEqual(["race", "lease"]);

  const late = new SimulatedJob((ctx: Context) => long(ctx, "deadline"), { deadline: MINUTE });
  expect(await late.execute()).toMatchObject({ kind: "failed", error: { name: "DeadlineExceeded" } });
  expect(aborted).toEqual(["race", "lease", "deadline"]);
});

test("the function's signal fires once, for a cancellation, the deadline or a lost lease, and not when the job sleeps or ends", async () => {
  const fired: string[] = [];
  const heard = (name: string, rest: (ctx: Context) => Promise<unknown>) => async (ctx: Context) => {
    ctx.signal.addEventListener("abort", () => fired.push(name));
    await ctx.step("first", () => 1);
    await rest(ctx);
  };
  const sleeps = heard("well", async (ctx) => {
    await ctx.sleep("an hour", HOUR);
    await ctx.race({ won: (branch) => branch.step("won", () => 1), lost: (branch) => branch.step("lost", never) });
  });
  expect(await new SimulatedJob(sleeps).toEnd()).toMatchObject({ kind: "complete" });
  expect(fired).toEqual([]);

  const waits = (name: string) => heard(name, (ctx) => ctx.step("long", never));
  await new SimulatedJob(waits("deadline"), { deadline: MINUTE }).execute();
  expect(fired).toEqual(["deadline"]);
  const cancelled = new SimulatedJob(waits("cancelled"));
  cancelled.clock.after(SECOND, () => cancelled.stop.abort("it has been settled meanwhile"));
  await expect(cancelled.execute()).rejects.toThrow(LeaseLost);
  expect(fired).toEqual(["deadline", "cancelled"]);
  const lost: SimulatedJob = new SimulatedJob(
    heard("lost", (ctx) => Promise.all([ctx.step("long", never), ctx.step("next", () => lost.sim.kill(JOB_NAME))])),
  );
  await expect(lost.execute()).rejects.toThrow(LeaseLost);
  expect(fired).toEqual(["deadline", "cancelled", "lost"]);
});

test("the signal of a step that has ended or failed does not fire when its job sleeps or ends", async () => {
  const signals: AbortSignal[] = [];
  const simulated = new SimulatedJob(async (ctx: Context) => {
    await ctx.step("well", ({ signal }) => signals.push(signal));
    const ill = ({ signal }: { signal: AbortSignal }) => {
      signals.push(signal);
      throw new Error("ill");
    };
    await ctx.step("ill", ill, { retry: false }).catch(() => {});
    await ctx.sleep("a while", HOUR);
  });
  expect(await simulated.toEnd()).toMatchObject({ kind: "complete" });
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
});

test("an abandoned branch runs no further", async () => {
  const done: string[] = [];
  const simulated: SimulatedJob = new SimulatedJob(async (ctx: Context) => {
    await ctx.race({
      quick: (branch) => branch.sleep("quick", SECOND),
      slow: async (branch) => {
        await branch.step("slow", () => simulated.clock.pause(MINUTE));
        done.push("slow");
        await branch.step("after slow", () => done.push("after slow"));
      },
    });
    await ctx.step("work", () => simulated.clock.pause(HOUR));
  });
  expect(await simulated.toEnd()).toMatchObject({ kind: "complete" });
  expect(done).toEqual([]);
});

test("the end of the function waits for steps in the background, and for nothing else", async () => {
  let isNoted = false;
  const simulated: SimulatedJob = new SimulatedJob(async (ctx: Context) => {
    void ctx.sleep("for ever", 300 * DAY);
    void ctx.step("note", async () => {
      await simulated.clock.pause(MINUTE);
      isNoted = true;
    });
    return "done";
  });
  expect(await simulated.toEnd()).toEqual({ kind: "complete", value: "done" });
  expect(isNoted).toBe(true);
});

test("a job that breaks a rule fails even if the function catches the error", async () => {
  const simulated = new SimulatedJob(async (ctx: Context) => {
    try {
      await ctx.step("now", () => new Date());
    } catch {
      return "caught";
    }
  });
  expect(await simulated.toEnd()).toMatchObject({ kind: "failed", error: expect.any(NondeterminismError) });
});
