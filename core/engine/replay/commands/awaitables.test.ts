import { expect, test } from "vitest";
import { SimulatedJob } from "../../../../testing/simulation/simulated-job.ts";
import { type Context, HOUR, JobFailed, MINUTE, SECOND } from "../../../author/context.ts";

const MONTHS = 240;
const months = Array.from({ length: MONTHS }, (_, i) => i);
const month = { kind: "month", args: { parse: (value: unknown) => value as { n: number } } };

/** A job that starts 240 others, which end in a mixed order, ten at a time, every `apart` milliseconds. */
function rangeOf(apart: number): SimulatedJob {
  const simulated: SimulatedJob = new SimulatedJob(
    async (ctx: Context) => {
      let done = 0;
      return ctx.all(months, async (item, n) => {
        const job = await item.start(month, { n });
        const value = await item.await<{ n: number }>(job.name);
        done += 1;
        ctx.progress(done, MONTHS);
        return value.n;
      });
    },
    {
      start: async (_job, args) => {
        const { n } = args as { n: number };
        const name = await simulated.startOther(`month_${n}`);
        const rank = (n * 77) % MONTHS;
        simulated.clock.after(MINUTE + Math.floor(rank / 10) * apart, () =>
          simulated.sim.settle(name, "resolved", { n }),
        );
        return name;
      },
    },
  );
  return simulated;
}

test("240 awaited jobs may end in any order, and each wake-up makes a bounded number of requests", async () => {
  const simulated = rangeOf(MINUTE);
  const first = await simulated.next();
  expect(first).toEqual({ kind: "asleep" });
  let wakes = 0;
  for (;;) {
    const outcome = await simulated.next();
    wakes += 1;
    expect(simulated.cost.requests).toBeLessThanOrEqual(3);
    if (outcome.kind === "asleep") continue;
    expect(outcome).toEqual({ kind: "complete", value: months });
    break;
  }
  expect(wakes).toBe(24);
});

test("a worker that takes over the job reads each awaited job once", async () => {
  const simulated = rangeOf(MINUTE);
  await simulated.next();
  for (let i = 0; i < 10; i++) await simulated.next();
  simulated.forget();
  simulated.hasNews = false;
  await simulated.next();
  const records = simulated.paths().length;
  expect(simulated.cost.requests).toBeLessThanOrEqual(records + 64 + MONTHS + 10);
});

test("without news, a wake-up reads only the jobs that are still awaited", async () => {
  const simulated = rangeOf(MINUTE);
  simulated.hasNews = false;
  await simulated.next();
  for (let left = MONTHS; ; left -= 10) {
    const outcome = await simulated.next();
    expect(simulated.cost.requests).toBeLessThanOrEqual(2 * left + 6);
    if (outcome.kind !== "asleep") break;
  }
});

test("the outcomes of jobs that end at the same time reach the function in one execution", async () => {
  const simulated = rangeOf(0);
  await simulated.next();
  expect(await simulated.next()).toEqual({ kind: "complete", value: months });
  expect(simulated.cost.requests).toBeLessThanOrEqual(MONTHS + 10);
});

test("a job with a very long name can be awaited", async () => {
  const name = `other_${"x".repeat(480)}`;
  const simulated = new SimulatedJob((ctx: Context) => ctx.await(name));
  await simulated.startOther(name);
  simulated.sim.settle(name, "resolved", "well");
  expect(await simulated.toEnd()).toEqual({ kind: "complete", value: "well" });
});

test("awaiting a job that failed, was cancelled or timed out throws its status and reason", async () => {
  const fn = async (ctx: Context) => {
    const reasons: unknown[] = [];
    for (const name of ["broken", "cancelled", "late"]) {
      await ctx.await(name).catch((error: JobFailed) => {
        reasons.push([error instanceof JobFailed, error.jobName, error.status, error.message]);
      });
    }
    return reasons;
  };
  const simulated = new SimulatedJob(fn, { deadline: HOUR });
  for (const name of ["broken", "cancelled"]) await simulated.startOther(name);
  await simulated.sim.start("late", {}, simulated.clock.now() + MINUTE);
  simulated.clock.after(SECOND, () => simulated.sim.settle("broken", "rejected", new Error("503 for an hour")));
  simulated.clock.after(SECOND, () => simulated.sim.settle("cancelled", "rejected_canceled"));
  expect(await simulated.toEnd()).toEqual({
    kind: "complete",
    value: [
      [true, "broken", "failed", "503 for an hour"],
      [true, "cancelled", "cancelled", "it was cancelled"],
      [true, "late", "timed_out", "it did not finish before its deadline"],
    ],
  });
});

test("several questions are asked at once, and answered in any order", async () => {
  const question = (message: string) => ({ message, requestedSchema: { type: "object" as const, properties: {} } });
  const states: number[] = [];
  const simulated = new SimulatedJob(
    async (ctx: Context) => {
      const names = ["one", "two", "three"];
      const answers = await Promise.all(names.map((name) => ctx.ask(name, question(name))));
      return answers.map(({ action }) => action);
    },
    { onState: ({ questions }) => states.push(questions.length) },
  );
  expect(await simulated.execute()).toEqual({ kind: "asleep" });
  expect(simulated.paths()).toEqual(["one", "two", "three"]);
  expect(states.at(-1)).toBe(3);
  simulated.answer("three", { action: "decline" });
  expect(await simulated.execute()).toEqual({ kind: "asleep" });
  expect(states.at(-1)).toBe(2);
  simulated.answer("one", { action: "cancel" });
  simulated.answer("two", { action: "accept", content: {} });
  simulated.forget();
  expect(await simulated.execute()).toEqual({ kind: "complete", value: ["cancel", "accept", "decline"] });
});
