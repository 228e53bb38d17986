import { expect, test } from "vitest";
import type { Death } from "../../../testing/simulation/plan.ts";
import { JOB_NAME, SimulatedJob } from "../../../testing/simulation/simulated-job.ts";
import { trial } from "../../../testing/simulation/trial.ts";
import {
  type Context,
  DAY,
  HOUR,
  MINUTE,
  NonRetryableError,
  RetryableError,
  SECOND,
  type StepOptions,
  TimeoutError,
} from "../../author/context.ts";
import { LeaseLost } from "../job-lease.ts";
import type { Runnable, Runtime } from "../runtime.ts";

/** A step that fails so many times, a job that does nothing else, and the attempts that the step has seen. */
function failing(times: number, error: () => unknown = () => new Error("503")) {
  const attempts: { attempt: number; at: number; key: string }[] = [];
  const fn =
    (simulated: () => SimulatedJob) =>
    ({ attempt, idempotencyKey }: { attempt: number; idempotencyKey: string }) => {
      attempts.push({ attempt, at: simulated().clock.now(), key: idempotencyKey });
      if (attempts.length <= times) throw error();
      return "well";
    };
  const job = (options: StepOptions = {}, runtime: Partial<Runtime> = {}): SimulatedJob => {
    const step = fn(() => simulated);
    const simulated: SimulatedJob = new SimulatedJob((ctx: Context) => ctx.step("fetch", step, options), runtime);
    return simulated;
  };
  return { attempts, fn, job };
}

test("a step is retried after growing pauses; each attempt has its number, and all have one idempotency key", async () => {
  const { attempts, job } = failing(4);
  expect(await job().toEnd()).toEqual({ kind: "complete", value: "well" });
  expect(attempts.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5]);
  expect(new Set(attempts.map(({ key }) => key)).size).toBe(1);
  expect(attempts[0]?.key).toMatch(/^[0-9a-f]{32}$/);
  const pauses = attempts.slice(1).map(({ at }, i) => at - (attempts[i]?.at ?? 0));
  for (const [i, pause] of pauses.entries()) {
    expect(pause).toBeGreaterThanOrEqual(500 * 2 ** i);
    expect(pause).toBeLessThanOrEqual(1_000 * 2 ** i + 5);
  }
});

test("no two steps of a job share an idempotency key", async () => {
  const keys: string[] = [];
  const fn = async (ctx: Context) => {
    const note = (on: Context) => on.step("note", ({ idempotencyKey }) => keys.push(idempotencyKey));
    for (let i = 0; i < 3; i++) await note(ctx);
    await ctx.all(["a", "b"], note);
  };
  await new SimulatedJob(fn).toEnd();
  expect(new Set(keys).size).toBe(5);
});

test("a worker waits through a short pause, and is free during a long one", async () => {
  const short = failing(1);
  expect(await short.job({ retry: { initialInterval: 4 * SECOND } }).execute()).toMatchObject({ kind: "complete" });
  const long = failing(1);
  const slept = long.job({ retry: { initialInterval: MINUTE } });
  expect(await slept.execute()).toEqual({ kind: "asleep" });
  expect(long.attempts).toHaveLength(1);
  slept.forget();
  expect(await slept.next()).toEqual({ kind: "complete", value: "well" });
  expect(long.attempts[1]).toMatchObject({ attempt: 2 });
});

test("the count of attempts and the budget survive every crash", async () => {
  const run = async (deaths: Death[]) => {
    const attempts = new Set<number>();
    const fn = (clock: { now(): number }) => (ctx: Context) => {
      const begun = clock.now();
      return ctx
        .step(
          "fetch",
          ({ attempt }) => {
            attempts.add(attempt);
            throw new Error("503");
          },
          {
            retry: { maxAttempts: 4 },
          },
        )
        .catch((error) => [error.message, error.attempts, begun > 0]);
    };
    const { value } = await trial((clock) => fn(clock) as unknown as Runnable, {}, {}, { deaths, isWarm: false });
    expect([...attempts].sort()).toEqual([1, 2, 3, 4]);
    expect(value).toEqual(["503", 4, true]);
  };
  for (let at = 1; at <= 12; at++) for (const how of ["before", "after"] as const) await run([{ at, how }]);
});

test("retries end with their budget, and at final errors", async () => {
  const ends = async (error: () => unknown, options = {}) => {
    const { attempts, job } = failing(Number.POSITIVE_INFINITY, error);
    const outcome = await job(options).toEnd();
    const took = (attempts.at(-1)?.at ?? 0) - (attempts[0]?.at ?? 0);
    return { tries: attempts.length, took, message: outcome.kind === "failed" && String(outcome.error) };
  };
  const usual = await ends(() => new Error("503"));
  expect(usual.tries).toBeGreaterThan(10);
  expect(usual.took).toBeLessThanOrEqual(10 * MINUTE);
  expect(usual.took).toBeGreaterThan(8 * MINUTE);
  expect(usual.message).toBe("Error: 503");
  expect((await ends(() => new Error("503"), { retry: { maxDuration: HOUR } })).took).toBeGreaterThan(50 * MINUTE);
  expect((await ends(() => new NonRetryableError("gone"))).tries).toBe(1);
  expect((await ends(() => new TypeError("x is not a function"))).tries).toBe(1);
  expect((await ends(() => new Error("503"), { retry: false })).tries).toBe(1);
  expect(
    (await ends(() => new TypeError("fetch failed", { cause: "reset" }), { retry: { maxAttempts: 3 } })).tries,
  ).toBe(3);
});

test("an attempt that failed with `retryAfter` is not retried before that time", async () => {
  const { attempts, job } = failing(1, () => new RetryableError("429", { retryAfter: 90 * SECOND }));
  await job().toEnd();
  expect((attempts[1]?.at ?? 0) - (attempts[0]?.at ?? 0)).toBeGreaterThanOrEqual(90 * SECOND);
});

test("a step whose `retryAfter` is not a number is retried after the ordinary pause", async () => {
  const { attempts, job } = failing(1, () => new RetryableError("429", { retryAfter: Number("Thu, 01 Jan 2026") }));
  expect(await job().toEnd()).toMatchObject({ kind: "complete" });
  const pause = (attempts[1]?.at ?? 0) - (attempts[0]?.at ?? 0);
  expect(pause).toBeGreaterThanOrEqual(SECOND / 2);
  expect(pause).toBeLessThanOrEqual(SECOND);
});

test("an attempt that takes too long is aborted, and the next begins", async () => {
  const aborted: number[] = [];
  const simulated = new SimulatedJob((ctx: Context) =>
    ctx.step(
      "slow",
      ({ attempt, signal }) => {
        if (attempt > 2) return "well";
        signal.addEventListener("abort", () => aborted.push(attempt));
        return new Promise<string>(() => {});
      },
      { timeout: 30 * SECOND },
    ),
  );
  expect(await simulated.toEnd()).toEqual({ kind: "complete", value: "well" });
  expect(aborted).toEqual([1, 2]);
  const never = new SimulatedJob((ctx: Context) =>
    ctx.step("slow", () => new Promise(() => {}), { timeout: 1_500, retry: false }),
  );
  const end = await never.toEnd();
  expect(end).toMatchObject({ kind: "failed", error: { message: "no outcome within 1.5 seconds" } });
  expect(end).toMatchObject({ error: expect.any(TimeoutError) });
});

test("while a step is retried, the job's state tells the attempt, the last error and when the next is due", async () => {
  const told: object[] = [];
  const { job } = failing(2, () => new Error("503 from the archive"));
  const onState: Runtime["onState"] = ({ steps: [step] }) =>
    step && told.push({ attempt: step.attempt, error: step.error, next: step.next });
  await job({ retry: { initialInterval: MINUTE } }, { onState }).toEnd();
  expect(told).toContainEqual({ attempt: 2, error: "503 from the archive", next: expect.any(Number) });
  expect(told).toContainEqual({ attempt: 3, error: "503 from the archive", next: expect.any(Number) });
});

// --- until ------------------------------------------------------------------------------------------------------------

test("looks are made at regular times, and the value that one finds is returned", async () => {
  const looks: number[] = [];
  const simulated: SimulatedJob = new SimulatedJob((ctx: Context) =>
    ctx.until("up", { every: 30 * SECOND }, () => {
      looks.push(simulated.clock.now());
      if (looks.length === 2) throw new Error("ECONNREFUSED");
      return looks.length === 4 && { status: 200 };
    }),
  );
  expect(await simulated.toEnd()).toEqual({ kind: "complete", value: { status: 200 } });
  expect(looks.map((at) => at - (looks[0] ?? 0))).toEqual([0, 30_000, 60_000, 90_000]);
  expect(simulated.paths()).toEqual(["up", "up"]);
});

test("looks end with the last reason when their time is over, and at final errors", async () => {
  const down = new SimulatedJob((ctx: Context) =>
    ctx.until("up", { every: MINUTE, for: HOUR }, () => Promise.reject(new Error("503"))),
  );
  const error = { name: "NonRetryableError", message: '"up" did not come about within an hour: 503' };
  expect(await down.toEnd()).toMatchObject({ kind: "failed", error });
  let looks = 0;
  const refused = new SimulatedJob((ctx: Context) =>
    ctx.until("up", { every: MINUTE }, () => {
      looks += 1;
      throw new NonRetryableError("401");
    }),
  );
  expect(await refused.toEnd()).toMatchObject({ kind: "failed", error: { message: "401" } });
  expect(looks).toBe(1);
});

/** The times of the looks, in milliseconds after the first, and of the end; nothing is ever found. */
async function looksOf(times: { every: number; for?: number }, { skew = 0, isCold = false, deadline = DAY } = {}) {
  const looks: number[] = [];
  const simulated: SimulatedJob = new SimulatedJob(
    (ctx: Context) => ctx.until("up", times, () => looks.push(simulated.clock.now()) < 0),
    { deadline },
  );
  simulated.skew = skew;
  for (;;) {
    const end = await simulated.next();
    const now = simulated.clock.now();
    if (end.kind !== "asleep") return [...looks, now].map((at) => at - (looks[0] ?? 0));
    if (isCold) simulated.forget();
  }
}

test.each([0, 40, -40])(
  "the last look is made when the time is over, by a server that is %i ms ahead",
  async (skew) => {
    for (const isCold of [false, true]) {
      const looks = async (times: { every: number; for: number }) =>
        (await looksOf(times, { skew, isCold })).map((at) => Math.round(at / MINUTE));
      expect(await looks({ every: HOUR, for: 30 * MINUTE })).toEqual([0, 30, 30]);
      expect(await looks({ every: 20 * MINUTE, for: 50 * MINUTE })).toEqual([0, 20, 40, 50, 50]);
      expect(await looks({ every: 20 * MINUTE, for: 40 * MINUTE })).toEqual([0, 20, 40, 40]);
      expect(await looks({ every: HOUR, for: 0 })).toEqual([0, 0]);
    }
  },
);

test("an until that may last longer than its job ends with the last regular look before the deadline", async () => {
  const looks = await looksOf({ every: 25 * MINUTE, for: DAY }, { deadline: HOUR });
  expect(looks).toEqual([0, 25 * MINUTE, 50 * MINUTE, 50 * MINUTE]);
  expect(await looksOf({ every: 25 * MINUTE }, { deadline: HOUR })).toEqual(looks);
});

test("a look is refused if its value cannot be stored", async () => {
  const simulated = new SimulatedJob((ctx: Context) => ctx.until("up", { every: MINUTE }, () => new Response("up")));
  expect(await simulated.toEnd()).toMatchObject({ kind: "failed", error: { name: "NondeterminismError" } });
});

test("a job that something else wakes makes no look before its time", async () => {
  const looks: number[] = [];
  const simulated: SimulatedJob = new SimulatedJob(async (ctx: Context) => {
    const up = ctx.until("up", { every: HOUR }, () => looks.push(simulated.clock.now()) === 3);
    for (let i = 0; i < 20; i++) await ctx.sleep("a while", 7 * MINUTE);
    return up;
  });
  const begun = simulated.clock.now();
  expect(await simulated.toEnd()).toMatchObject({ kind: "complete" });
  expect(looks.map((at) => at - begun)).toEqual([0, HOUR, 2 * HOUR]);
});

test.each(["warm", "cold"])("the 500th look costs as much as the fifth, with a %s journal", async (memory) => {
  let looks = 0;
  const simulated = new SimulatedJob((ctx: Context) => ctx.until("up", { every: 30 * SECOND }, () => ++looks === 501));
  const costs: { requests: number; characters: number }[] = [];
  for (;;) {
    const outcome = await simulated.next();
    costs.push({ ...simulated.cost });
    if (outcome.kind !== "asleep") break;
    if (memory === "cold") simulated.forget();
  }
  expect(looks).toBe(501);
  const [fifth, last] = [costs[4], costs[499]];
  expect(last?.requests).toBe(fifth?.requests);
  expect(last?.requests).toBeLessThanOrEqual(memory === "warm" ? 2 : 22);
  // The numbers in later requests have more digits.
  expect(Math.abs((last?.characters ?? 0) - (fifth?.characters ?? 0))).toBeLessThan(40);
});

test("a loop of a step and a sleep costs a warm worker the same each time", async () => {
  const simulated = new SimulatedJob(async (ctx: Context) => {
    for (let i = 0; i < 120; i++) {
      await ctx.step("look", () => ({ up: false }));
      await ctx.sleep("pause", 30 * SECOND);
    }
  });
  const costs: { requests: number; characters: number }[] = [];
  while ((await simulated.next()).kind === "asleep") costs.push({ ...simulated.cost });
  const [early, late] = [costs[10], costs[110]];
  expect(late?.requests).toBe(early?.requests);
  expect(late?.requests).toBeLessThanOrEqual(4);
  expect(Math.abs((late?.characters ?? 0) - (early?.characters ?? 0))).toBeLessThan(60);
});

test.each([20_000, -20_000])(
  "sleeps and pauses end by the server's clock, even if it differs by %i ms",
  async (skew) => {
    let looks = 0;
    const { fn } = failing(2);
    const simulated: SimulatedJob = new SimulatedJob(async (ctx: Context) => {
      const up = ctx.until("up", { every: MINUTE }, () => ++looks > 3);
      const items = ctx.all([1, 2, 3], (item, n) => item.sleep("a while", n * HOUR));
      await ctx.step(
        "fetch",
        fn(() => simulated),
        { retry: { initialInterval: 30 * SECOND } },
      );
      await ctx.sleep("some seconds", 10 * SECOND);
      return [await up, (await items).length];
    });
    simulated.skew = skew;
    const begun = simulated.clock.now();
    let requests = 0;
    for (;;) {
      const outcome = await simulated.next();
      requests += simulated.cost.requests;
      if (outcome.kind === "asleep") continue;
      expect(outcome).toEqual({ kind: "complete", value: [true, 3] });
      break;
    }
    expect(Math.abs(simulated.clock.now() - begun - 3 * HOUR)).toBeLessThan(MINUTE);
    expect(requests).toBeLessThan(150);
  },
);

test("a lease that is lost before a step is recorded ends the execution", async () => {
  const simulated: SimulatedJob = new SimulatedJob(
    (ctx: Context) => ctx.step("a", () => simulated.sim.kill(JOB_NAME)),
    {
      deadline: DAY,
    },
  );
  await expect(simulated.execute()).rejects.toThrow(LeaseLost);
  expect(simulated.paths()).toEqual([]);
});
