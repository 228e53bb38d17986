/** Functions with several pieces of work at once, killed and replayed at every point. */
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { replay } from "../../testing/replay.ts";
import { SimulatedJob } from "../../testing/simulation/simulated-job.ts";
import { defineDurableTool } from "../tools/job-tool.ts";
import {
  type Context,
  HOUR,
  MINUTE,
  NonRetryableError,
  type Retry,
  SECOND,
  type ChildJobOptions,
  TimeoutError,
} from "./context.ts";
import { implement } from "./implement.ts";
import { defineJob } from "./job.ts";

const args = z.object({ day: z.string() });
const report = defineJob({ kind: "report", args, result: z.object({ pages: z.number() }), id: ({ day }) => day });
const tool = defineDurableTool({
  name: "summary",
  title: "Summary",
  description: "Writes a summary.",
  input: args,
  output: z.object({ text: z.string() }),
  id: ({ day }) => day,
});

const failing = (message: string) => () => Promise.reject(new NonRetryableError(message));

test("a started job is a handle whose result has the type of the definition, of a tool or of a job", async () => {
  const both = async (ctx: Context, { day }: { day: string }) => {
    const child = await ctx.start(report, { day });
    const { pages } = await child.result();
    expectTypeOf(pages).toEqualTypeOf<number>();
    const { text } = await (await ctx.start(tool, { day })).result();
    expectTypeOf(text).toEqualTypeOf<string>();
    // @ts-expect-error The arguments are the definition's.
    const refused = () => ctx.start(report, { month: day });
    expectTypeOf(refused).toBeFunction();
    return { name: child.name, pages, text, again: await child.result() };
  };
  const jobs = { report: { pages: 3 }, summary: { text: "all is well" } };
  const { result } = await replay(both, { day: "monday" }, { jobs });
  expect(result).toEqual({ name: "report_monday", pages: 3, text: "all is well", again: { pages: 3 } });
});

test("a start whose arguments differ only in what the id leaves out throws, and joins that job if it says so", async () => {
  const article = z.object({ order: z.string(), what: z.string() });
  const ship = defineJob({ kind: "ship", args: article, id: ({ order }) => order });
  const both = async (ctx: Context) => {
    const start = (what: string, options?: ChildJobOptions) =>
      ctx.start(ship, { order: "7", what }, options).then(
        ({ name }) => name,
        (error) => [error.name, error.message],
      );
    return [await start("book"), await start("pen"), await start("book"), await start("pen", { ifExists: "join" })];
  };
  const message =
    'ship was not started: ship_7 was started with other arguments: {"order":"7","what":"book"}. It is not started for these';
  const { result } = await replay(both, {}, { jobs: { ship: null } });
  expect(result).toEqual(["ship_7", ["NonRetryableError", message], "ship_7", "ship_7"]);
});

test("a function that awaits a job which it cancelled by its handle learns that it was cancelled", async () => {
  const impatient = async (ctx: Context) => {
    const child = await ctx.start(report, { day: "x".repeat(400) });
    const first = await ctx.race({ done: (c) => c.await(child), late: (c) => c.sleep("late", SECOND) });
    await child.cancel();
    const why = await child.result().catch((error) => error.status);
    return [first.winner, why];
  };
  expect((await replay(impatient, {}, { jobs: { report: "too late" } })).result).toEqual(["late", "cancelled"]);
});

test("all items of ctx.allSettled end, and each result says how", async () => {
  const all = (ctx: Context) =>
    ctx.allSettled(["a", "b", "c"], async (c, key) => {
      await c.sleep("a while", key === "c" ? MINUTE : SECOND);
      return c.step("do", key === "b" ? failing("not b") : () => key);
    });
  const mapped = async (ctx: Context) =>
    (await all(ctx)).map((each) => (each.status === "fulfilled" ? each.value : String(each.reason)));
  expect((await replay(mapped, {})).result).toEqual(["a", "NonRetryableError: not b", "c"]);
});

test("the error of a failed item lists the items that were given up", async () => {
  const lost = async (ctx: Context) => {
    try {
      return await ctx.all(["a", "b", "c"], async (c, key) => {
        if (key === "a") return key;
        return c.step("do", key === "b" ? failing("not b") : () => new Promise((resolve) => setTimeout(resolve, 5)));
      });
    } catch (error) {
      const { message, givenUp } = error as Error & { givenUp: string[] };
      return { message, givenUp };
    }
  };
  expect((await replay(lost, {})).result).toEqual({ message: "not b", givenUp: ["c"] });
});

test("the first branch that succeeds wins, and if all fail the error says why", async () => {
  const lucky = (ctx: Context) =>
    ctx.any({
      fails: (c) => c.step("at once", failing("not here")),
      slow: async (c) => {
        await c.sleep("a minute", MINUTE);
        return c.step("answer", () => 42);
      },
      slower: (c) => c.sleep("an hour", HOUR),
    });
  expect((await replay(lucky, {})).result).toEqual({ winner: "slow", value: 42 });
  const unlucky = (ctx: Context) =>
    ctx.any({ a: (c) => c.step("a", failing("no a")), b: (c) => c.step("b", failing("no b")) });
  await expect(replay(unlucky, {})).rejects.toThrow("every branch failed: no a; no b");
});

test("ctx.timeout abandons work that takes too long, and no other", async () => {
  const timely = async (ctx: Context) => {
    const quick = await ctx.timeout(HOUR, async (c) => {
      await c.sleep("a minute", MINUTE);
      return c.step("do", () => "done");
    });
    const slow = await ctx
      .timeout(90 * MINUTE, (c) => c.sleep("a day", 24 * HOUR), { name: "a day" })
      .catch((error) => (error instanceof TimeoutError ? error.message : "?"));
    const failed = await ctx.timeout(HOUR, (c) => c.step("fail", failing("no"))).catch((error) => error.message);
    return [quick, slow, failed];
  };
  expect((await replay(timely, {})).result).toEqual(["done", 'ctx.timeout: "a day" took longer than 1.5 hours', "no"]);
});

test("a step's own time-out is told from the end of ctx.timeout", async () => {
  const late = () => Promise.reject(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
  const fetched = (ctx: Context) =>
    ctx
      .timeout(HOUR, (c) => c.step("fetch", late, { retry: false }))
      .catch((error: Error) => [error.name, error instanceof TimeoutError]);
  expect((await replay(fetched, {})).result).toEqual(["TimeoutError", false]);
});

class HttpError extends Error {
  override name = "HttpError";
  readonly status: number;
  readonly headers: Record<string, string>;

  constructor(response: { status: number; headers: Record<string, string> }) {
    super(`it answered ${response.status}`);
    this.status = response.status;
    this.headers = response.headers;
  }

  get isGone() {
    return this.status === 410;
  }
}

const fails = (run: () => unknown, retry: Retry | false = false) =>
  replay(
    implement(defineJob({ kind: "fails", args: z.object({}), id: () => "x", errors: [HttpError] }), async (ctx) =>
      ctx.step("do", run as () => null, { retry }).catch((error: unknown) => {
        if (error instanceof HttpError) return [error.message, error.isGone, error.headers.server];
        if (error instanceof NonRetryableError) return ["not retryable", (error.cause as Error)?.message];
        const { name, status, cause } = error as Error & { status?: number; cause?: Error & { code?: string } };
        return [name, status ?? null, cause?.message ?? null, cause?.code ?? null];
      }),
    ),
    {},
  ).then(({ result }) => result);

test("an error of a registered class keeps its class after a step, as a NonRetryableError does", async () => {
  const gone = () => Promise.reject(new HttpError({ status: 410, headers: { server: "nginx" } }));
  expect(await fails(gone)).toEqual(["it answered 410", true, "nginx"]);
  const refused = () => Promise.reject(new NonRetryableError("no", { cause: new Error("because") }));
  expect(await fails(refused)).toEqual(["not retryable", "because"]);
});

test("an error of a registered class keeps the fields that its class computes", async () => {
  class Refused extends Error {
    readonly #response = { status: 403 };
    get status() {
      return this.#response.status;
    }
    get code() {
      return `E${this.status}`;
    }
  }
  const job = defineJob({ kind: "refused", args: z.object({}), id: () => "x", errors: [Refused] });
  const refused = implement(job, async (ctx) =>
    ctx
      .step("do", () => Promise.reject(new Refused("no")), { retry: false })
      .catch((error: unknown) => error instanceof Refused && [error.status, error.code]),
  );
  expect((await replay(refused, {})).result).toEqual([403, "E403"]);
});

test("a registered error's own field named `at` comes back, and is not taken for a source line", async () => {
  class Delayed extends Error {
    at = "12:00";
  }
  const job = defineJob({ kind: "delayed", args: z.object({}), id: () => "x", errors: [Delayed] });
  const delayed = implement(job, async (ctx) =>
    ctx
      .step("do", () => Promise.reject(new Delayed("no")), { retry: false })
      .catch((error: unknown) => error instanceof Delayed && error.at),
  );
  expect((await replay(delayed, {})).result).toBe("12:00");
});

test("any other error keeps its status and its cause", async () => {
  const cause = Object.assign(new Error("connection reset"), { code: "ECONNRESET" });
  const other = () => Promise.reject(Object.assign(new TypeError("fetch failed", { cause }), { status: 502 }));
  expect(await fails(other)).toEqual(["TypeError", 502, "connection reset", "ECONNRESET"]);
});

test("a step that gets broken JSON from a model is retried", async () => {
  const words = ["Sure! Here is the JSON:", '{ "a": 1 }'];
  const twice = async (ctx: Context) => ctx.step("ask", ({ attempt }) => JSON.parse(words[attempt - 1] ?? ""));
  expect((await replay(twice, {})).result).toEqual({ a: 1 });
});

test("the answer to a question with a zod schema has its type", async () => {
  const schema = z.object({ copies: z.number().int().default(1), color: z.enum(["red", "blue"]) });
  const asked = async (ctx: Context) => {
    const answer = await ctx.ask("print", { message: "How many?", schema });
    if (answer.action !== "accept") return "none";
    expectTypeOf(answer.content.copies).toEqualTypeOf<number>();
    return answer.content;
  };
  const answers = { print: { color: "blue" } };
  expect((await replay(asked, {}, { answers })).result).toEqual({ copies: 1, color: "blue" });
  const picky = (ctx: Context) =>
    ctx.ask("print", { message: "How many?", schema: schema.refine(({ copies }) => copies > 1, "too few") });
  await expect(replay(picky, {}, { answers })).rejects.toThrow('the answer to "print" does not fit: too few');
});

test("a question whose form nobody could fill in is refused", async () => {
  const schema = z.object({ address: z.object({ city: z.string() }) });
  const nested = (ctx: Context) => ctx.ask("where", { message: "Where?", schema });
  await expect(replay(nested, {})).rejects.toThrow('ctx.ask("where"): the field address is an object. Forms have');
  const dated = (ctx: Context) => ctx.ask("when", { message: "When?", schema: z.object({ at: z.date() }) });
  await expect(replay(dated, {})).rejects.toThrow('ctx.ask("when"): its schema cannot be a form: Date');
});

const budgeted = (limit: number, onExceeded: "ask" | "fail", code: (ctx: Context) => Promise<unknown>) =>
  implement(
    defineJob({ kind: "budgeted", args: z.object({}), id: () => "x", budget: { tokens: { limit, onExceeded } } }),
    code,
  );

const research = async (ctx: Context) => {
  const found = await ctx.allSettled([1, 2, 3, 4, 5], async (c, n) => {
    await c.sleep("wait", n * SECOND);
    const tokens = await c.step("search", () => 30);
    return c.spend(tokens, { of: "tokens" });
  });
  const failed = found.filter(({ status }) => status === "rejected").length;
  const spent = await ctx.spend(0, { of: "tokens" }).catch((error) => [error.name, error.message]);
  return { failed, spent };
};

test("amounts spent side by side are counted once each, and the call that exceeds the budget fails", async () => {
  const { result, runs } = await replay(budgeted(120, "fail", research), {});
  expect(result).toEqual({ failed: 1, spent: ["BudgetExceeded", "150 of 120 tokens are spent"] });
  expect(runs).toBeGreaterThan(50);
});

test("viewers of a job see what it has spent, even after another worker has taken it over", async () => {
  const told: unknown[] = [];
  const code = async (ctx: Context) => {
    await ctx.spend(await ctx.step("search", () => 30), { of: "tokens" });
    await ctx.sleep("an hour", HOUR);
    await ctx.sleep("another", HOUR);
  };
  const budget = { tokens: { limit: 100 } };
  const job = new SimulatedJob(code, { budget, onState: ({ spent }) => void told.push(spent) });
  await job.execute();
  job.forget();
  told.push("taken over");
  await job.next();
  const spent = { tokens: { spent: 30, limit: 100, left: 70 } };
  expect(told.slice(told.indexOf("taken over") - 1)).toEqual([spent, "taken over", spent]);
});

test("a job whose budget asks goes on when more is allowed, and asks once for all waiting calls", async () => {
  const accept = { "tokens up to 100": {}, "tokens up to 150": {} };
  const { result } = await replay(budgeted(50, "ask", research), {}, { answers: accept });
  expect(result).toEqual({ failed: 0, spent: { spent: 150, limit: 150, left: 0 } });
  const declined = { "tokens up to 100": { action: "decline" as const } };
  const ended = await replay(budgeted(50, "ask", research), {}, { answers: declined });
  expect(ended.result).toMatchObject({ failed: 4, spent: ["BudgetExceeded", expect.stringContaining("not allowed")] });
});

test("after a refusal, later calls fail with what is spent by then, and nobody is asked again", async () => {
  const spends = async (ctx: Context) => {
    const spent: unknown[] = [];
    for (let i = 1; i <= 2; i++) await ctx.spend(60, { of: "tokens" }).catch((error) => spent.push(error.spent));
    return spent;
  };
  const answers = { "tokens up to 100": { action: "decline" as const } };
  expect((await replay(budgeted(50, "ask", spends), {}, { answers })).result).toEqual([60, 120]);
});

test("a clean-up after an open question about the budget hears that the budget is exceeded", async () => {
  const spends = async (ctx: Context) => {
    const heard: unknown[] = [];
    const spend = (c: Context) => c.spend(60, { of: "tokens" }).catch((error) => heard.push(error.name, error.message));
    await spend(ctx);
    await ctx.cleanup(spend);
    return heard;
  };
  const { result } = await replay(budgeted(50, "ask", spends), {}, { deadline: HOUR });
  const late = ["DeadlineExceeded", "the job did not finish before its deadline"];
  expect(result).toEqual([...late, "BudgetExceeded", "120 of 50 tokens are spent: more was not allowed"]);
});

test("an amount that is not a number, and a budget that is not defined, are refused", async () => {
  const spends = (amount: number, of: string) =>
    replay(
      budgeted(5, "fail", (ctx) => ctx.spend(amount, { of })),
      {},
    );
  await expect(spends(Number.NaN, "tokens")).rejects.toThrow("ctx.spend: NaN is not an amount of tokens");
  await expect(spends(1, "euros")).rejects.toThrow('ctx.spend: there is no budget of "euros"');
});
