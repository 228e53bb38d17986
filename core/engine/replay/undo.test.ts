/** What a function can do after a cancellation and after its deadline: clean up, and undo what it has done. */
import { expect, test } from "vitest";
import { replay } from "../../../testing/replay.ts";
import type { Plan } from "../../../testing/simulation/plan.ts";
import { SimulatedJob } from "../../../testing/simulation/simulated-job.ts";
import { trial } from "../../../testing/simulation/trial.ts";
import { type Context, DAY, HOUR, type JobContext, MINUTE, NonRetryableError, SECOND } from "../../author/context.ts";
import type { Runnable } from "../runtime.ts";

type Code = (ctx: JobContext<object>) => Promise<unknown>;

/** Runs a job that is cancelled after 90 seconds, killed at each of its first requests; `done` is what its steps did. */
async function cancelled(code: (done: Set<string>) => Code, deaths = 12): Promise<Set<string>[]> {
  const all: Set<string>[] = [];
  for (let at = 0; at <= deaths; at++) {
    const done = new Set<string>();
    const plan: Plan = {
      deaths: at === 0 ? [] : [{ at, how: "after" }],
      isWarm: at % 2 === 0,
      cancel: { after: 90 * SECOND, noticeDelay: 0 },
    };
    await trial(() => code(done) as unknown as Runnable, {}, {}, plan);
    all.push(done);
  }
  return all;
}

const acts = (done: Set<string>) => (ctx: Context, name: string) => ctx.step(name, () => void done.add(name));

const swallows: Record<string, (act: ReturnType<typeof acts>) => Code> = {
  "a best-effort loop": (act) => async (ctx) => {
    for (let i = 1; i <= 40; i++) {
      await act(ctx, `mail ${i}`).catch(() => {});
      await ctx.sleep(`pause ${i}`, MINUTE).catch(() => {});
    }
  },
  "ctx.allSettled and a later step": (act) => async (ctx) => {
    await ctx.allSettled(["mail 1", "mail 2"], (c, name) => act(c, name));
    await ctx.allSettled([1, 2], (c) => c.callback("sent").result);
    await act(ctx, "publish");
    await ctx.emit("published");
    await ctx.spend(1, { of: "none" });
  },
  "an own loop of retries": (act) => async (ctx) => {
    await act(ctx, "mail 1");
    await act(ctx, "mail 2");
    for (let n = 1; ; n++) {
      try {
        await ctx.ask(`go on ${n}`, { message: "?", requestedSchema: { type: "object", properties: {} } });
        return await act(ctx, `charge ${n}`);
      } catch {
        await act(ctx, "note").catch(() => {});
      }
    }
  },
  "a branch beside it, and continueAs": (act) => async (ctx) => {
    await Promise.all([
      act(ctx, "mail 1").then(() => act(ctx, "mail 2")),
      ctx.race({ a: (c) => c.sleep("a day", DAY).catch(() => act(c, "ship")) }).catch(() => {}),
    ]);
    return ctx.continueAs({});
  },
};

test.each(Object.entries(swallows))(
  "after its cancellation a job has no effect although its code catches: %s",
  async (_what, code) => {
    for (const done of await cancelled((done) => code(acts(done))))
      expect([...done].sort()).toEqual(["mail 1", "mail 2"]);
  },
);

test("a step of a clean-up that is under way at a cancellation ends, and its calls go on", async () => {
  const code = (done: Set<string>) => async (ctx: Context) => {
    await acts(done)(ctx, "reserve");
    await ctx.cleanup(async (c) => {
      await c.sleep("a while", 2 * MINUTE);
      await acts(done)(c, "release");
    });
    await acts(done)(ctx, "book");
  };
  for (const done of await cancelled(code)) expect([...done]).toEqual(["reserve", "release"]);
});

const books = (done: Set<string>, end: Code) => async (ctx: JobContext<object>) => {
  for (const what of ["flight", "hotel", "car"]) {
    ctx.onUndo(`undo ${what}`, () => void done.add(`-${what}`));
    await acts(done)(ctx, what);
  }
  return end(ctx);
};
const UNDONE = ["flight", "hotel", "car", "-car", "-hotel", "-flight"];
const failed = { kind: "failed" as const };

test.each<[what: string, end: Code, error: string]>([
  ["a failure", (ctx) => ctx.step("pay", () => Promise.reject(new NonRetryableError("no money"))), "no money"],
  ["its deadline", (ctx) => ctx.callback("sent").result, "the job did not finish before its deadline"],
  ["a throw", () => Promise.reject(new Error("enough")), "enough"],
])("after %s the undos of a job run in reverse, wherever its worker dies", async (_what, end, error) => {
  const done = new Set<string>();
  await expect(replay(books(done, end), {}, { deadline: HOUR, runs: 80 })).rejects.toThrow();
  expect(new Set(UNDONE)).toEqual(done);
  const once = new Set<string>();
  const job = new SimulatedJob(books(once, end) as never, { deadline: HOUR });
  expect(await job.toEnd()).toMatchObject({ ...failed, error: { message: error } });
  expect([...once]).toEqual(UNDONE);
});

test("after a cancellation the undos run whatever the function returns, and those of a branch too", async () => {
  const ends: Code[] = [
    (ctx) => ctx.callback("sent").result,
    (ctx) => ctx.callback("sent").result.catch(() => "done"),
    (ctx) => ctx.callback("sent").result.catch(() => ctx.continueAs({})),
    (ctx) => ctx.all(["a"], (c) => c.callback("sent").result),
  ];
  for (const end of ends) {
    for (const done of await cancelled((done) => books(done, end), 8)) expect([...done]).toEqual(UNDONE);
  }
  const branches = (done: Set<string>) => async (ctx: Context) => {
    await ctx.all(["flight", "hotel"], async (c, what) => {
      c.onUndo("undo", () => void done.add(`-${what}`));
      await acts(done)(c, what);
    });
    await ctx.sleep("a day", DAY);
  };
  for (const done of await cancelled(branches)) expect(done).toEqual(new Set(["flight", "hotel", "-flight", "-hotel"]));
});

test("after a value that cannot be stored the undos run, though the function catches its error and returns or continues", async () => {
  const message = 'step "pay" returned a Date: return value.toISOString()';
  for (const end of [() => "kept", (ctx: JobContext<object>) => ctx.continueAs({})]) {
    const done = new Set<string>();
    const kept = books(done, (ctx) => ctx.step("pay", () => new Date(0)).catch(() => end(ctx)));
    await expect(replay(kept, {}, { runs: 40 })).rejects.toThrow(message);
    expect([...done]).toEqual(UNDONE);
  }
});

test("a function that catches its error and returns keeps what it has done", async () => {
  const done = new Set<string>();
  const kept = books(done, (ctx) =>
    ctx.step("pay", () => Promise.reject(new NonRetryableError("no"))).catch(() => "kept"),
  );
  expect((await replay(kept, {}, { runs: 40 })).result).toBe("kept");
  expect([...done]).toEqual(["flight", "hotel", "car"]);
});

test("an undo that fails is named in the reason, and the others still run", async () => {
  const done = new Set<string>();
  const code = async (ctx: Context) => {
    ctx.onUndo("close", () => void done.add("closed"));
    ctx.onUndo("refund", () => Promise.reject(new NonRetryableError("the bank is shut")));
    throw new Error("no room");
  };
  const message = 'no room; "refund" was not undone: the bank is shut';
  expect(await new SimulatedJob(code).toEnd()).toMatchObject({ ...failed, error: { message } });
  expect([...done]).toEqual(["closed"]);
});

test("a loop that swallows its deadline without end is ended, and undone", async () => {
  const done = new Set<string>();
  const code = async (ctx: Context) => {
    ctx.onUndo("close", () => void done.add("closed"));
    for (let n = 1; ; n++) await ctx.callback(`sent ${n}`).result.catch(() => {});
  };
  expect(await new SimulatedJob(code, { deadline: HOUR }).toEnd()).toMatchObject({
    ...failed,
    error: { name: "DeadlineExceeded" },
  });
  expect([...done]).toEqual(["closed"]);
});
