/** What a function does at its deadline: the call that it waits in throws, and it cleans up. */
import { expect, test } from "vitest";
import * as z from "zod";
import { replay } from "../../../testing/replay.ts";
import { cancelIn, entryIn, JOB_NAME, recordsIn, SimulatedJob } from "../../../testing/simulation/simulated-job.ts";
import { type Context, DAY, DeadlineExceeded, HOUR, MINUTE, SECOND } from "../../author/context.ts";
import { lateOutcomeOf } from "../guard/seeded.ts";
import { LeaseLost } from "../job-lease.ts";

const question = { message: "Go on?", requestedSchema: { type: "object" as const, properties: {} } };
const there = { kind: "there", args: { parse: (value: unknown) => value as object } };

const waits: Record<string, (ctx: Context) => Promise<unknown>> = {
  "a question": (ctx) => ctx.ask("go on", question),
  "a callback": (ctx) => ctx.callback("sent").result,
  "a race of sleeps and others": (ctx) =>
    ctx.race({ asked: (c) => c.ask("go on", question), late: (c) => c.sleep("late", DAY) }),
  "an until": (ctx) => ctx.until("up", { every: 7 * MINUTE, for: 2 * HOUR }, () => false),
};

test.each(Object.entries(waits))(
  "at its deadline, a function that waits for %s cleans up and returns what it has, wherever its worker dies",
  async (_what, wait) => {
    const made = async (ctx: Context) => {
      const found = [await ctx.step("find", () => "first")];
      try {
        await wait(ctx);
      } catch (error) {
        const why = (error as Error).name;
        const undone = await ctx.cleanup(async (ctx) => {
          await ctx.sleep("a little", SECOND);
          return ctx.step("undo", () => "undone");
        });
        found.push(undone, why);
      }
      return found;
    };
    const { result } = await replay(made, {}, { deadline: HOUR, runs: 60 });
    expect(result).toEqual(["first", "undone", _what === "an until" ? "NonRetryableError" : "DeadlineExceeded"]);
  },
);

test("a job that waits only for another job wakes at its deadline", async () => {
  const parent = async (ctx: Context) => (await ctx.start(there, {})).result();
  const job = new SimulatedJob(parent, { deadline: HOUR });
  expect(await job.toEnd()).toMatchObject({ kind: "failed", error: { name: "DeadlineExceeded" } });
});

test("a worker whose clock is behind the server's tells the function of its deadline", async () => {
  const code = async (ctx: Context) => {
    const { result } = await ctx.start(there, {});
    const release = (ctx: Context) => ctx.step("release", () => "released");
    return result().catch(async (error) => [error.name, await ctx.cleanup(release)]);
  };
  for (const skew of [0, 3 * SECOND]) {
    const job = new SimulatedJob(code, { deadline: HOUR });
    job.skew = skew;
    await job.sim.start("there", {}, job.clock.now() + DAY);
    expect(await job.toEnd()).toMatchObject({ kind: "complete", value: ["DeadlineExceeded", "released"] });
  }
});

test("steps under way may still end at the deadline, and are named as unfinished if they do not", async () => {
  const code = async (ctx: Context) => {
    const heard: unknown[] = [];
    const note = (each: Promise<unknown>) =>
      each.then(
        (value) => heard.push(value),
        (error) => heard.push(error),
      );
    const soon = ctx.step(
      "soon",
      ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve("soon"))),
    );
    const cut = ctx.step("cut", ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject)));
    const deaf = ctx.step("deaf", () => new Promise(() => {}));
    await Promise.all([note(soon), note(cut), note(deaf)]);
    const [first, ...errors] = heard as [string, ...DeadlineExceeded[]];
    return [first, ...errors.map((error) => [error instanceof DeadlineExceeded, ...error.unfinished])];
  };
  const late = [true, "cut", "deaf"];
  expect(await new SimulatedJob(code, { deadline: HOUR }).toEnd()).toEqual({
    kind: "complete",
    value: ["soon", late, late],
  });
});

test("the outcome of a step that ends while its job is cancelled is left to the clean-up, and nothing else is", async () => {
  const job: SimulatedJob = new SimulatedJob((ctx: Context) =>
    ctx.step("pay", async () => {
      await cancelIn(job.sim, job.clock.now());
      return "7 euros";
    }),
  );
  await expect(job.execute()).rejects.toThrow(LeaseLost);
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
  const id = lateOutcomeOf(JOB_NAME, "pay");
  expect(entryIn(job.sim.get(id)?.value.data)).toMatchObject({ op: "pay", value: "7 euros" });
  expect(job.sim.requests.get("promise.settle")).toBe(1);
});

test("a clean-up that takes too long is cut off, and the error of one that throws becomes the job's", async () => {
  const slow = async (ctx: Context) => {
    try {
      await ctx.ask("go on", question);
    } finally {
      await ctx.cleanup((ctx) => ctx.step("close", () => new Promise(() => {})));
    }
  };
  await expect(new SimulatedJob(slow, { deadline: HOUR }).toEnd()).rejects.toThrow("no longer run here");
  const wrong = async (ctx: Context) =>
    ctx.ask("go on", question).catch(() => Promise.reject(new Error("no way back")));
  expect(await new SimulatedJob(wrong, { deadline: HOUR }).toEnd()).toMatchObject({
    kind: "failed",
    error: { message: "no way back" },
  });
});

test("calls that the deadline ends at once are told of it in the order that stored journals have", async () => {
  const code = async (ctx: Context) => {
    const undo = (what: string) => () => ctx.cleanup((ctx) => ctx.step("undo", () => what));
    const typed = { message: "Go on?", schema: z.object({}) };
    return Promise.all([
      ctx.ask("typed", typed).catch(undo("typed")),
      ctx.callback("sent", { schema: z.string() }).result.catch(undo("sent")),
      ctx.ask("plain", question).catch(undo("plain")),
    ]);
  };
  const job = new SimulatedJob(code, { deadline: HOUR });
  expect(await job.toEnd()).toEqual({ kind: "complete", value: ["typed", "sent", "plain"] });
  const undone = recordsIn(job.sim).flatMap(({ event }) => (event.kind === "step" ? [[event.op, event.value]] : []));
  expect(Object.fromEntries(undone)).toEqual({
    "cleanup/undo": "plain",
    "cleanup#2/undo": "typed",
    "cleanup#3/undo": "sent",
  });
});

test("a sleep that would end after the deadline throws at once, so that the function cleans up, wherever its worker dies", async () => {
  const words = /^sleep "a month" would end after the job's deadline, .*: give the definition a longer one$/;
  const done = new Set<string>();
  const saga = async (ctx: Context) => {
    const step = (name: string, c = ctx) => c.step(name, () => void done.add(name));
    try {
      await step("reserve");
      await ctx.sleep("a month", 30 * DAY);
    } catch (error) {
      await ctx.cleanup(async (ctx) => {
        await ctx.sleep("a little", SECOND);
        await step("undo", ctx);
      });
      throw error;
    } finally {
      await ctx.cleanup((ctx) => step("close", ctx));
    }
  };
  await expect(replay(saga, {}, { deadline: HOUR })).rejects.toThrow(words);
  expect([...done]).toEqual(["reserve", "undo", "close"]);

  const returns = async (ctx: Context) => {
    const found = await ctx.step("find", () => "first");
    const late = await ctx.sleep("a month", 30 * DAY).catch((error) => error);
    return [found, late.name, late.message];
  };
  const job = new SimulatedJob(returns, { deadline: HOUR });
  const begun = job.clock.now();
  const value = ["first", "DeadlineExceeded", expect.stringMatching(words)];
  expect(await job.toEnd()).toEqual({ kind: "complete", value });
  expect(job.clock.now() - begun).toBeLessThan(MINUTE);
});
