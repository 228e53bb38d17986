import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { type Context, DAY, type JobContext, MINUTE, SECOND } from "../core/author/context.ts";
import type { DurableFunction } from "../core/author/implement.ts";
import { implement } from "../core/author/implement.ts";
import { defineJob } from "../core/author/job.ts";
import { replay } from "./replay.ts";

let orders = 0;
/** Another name at each call, of which the guard knows nothing. */
const newOrder = () => `order ${++orders}`;

const question = { message: "Go on?", requestedSchema: { type: "object" as const, properties: {} } };
const other = { kind: "other_job", args: { parse: (value: unknown) => value as object } };

test("a function that is killed at every point, over a year of sleep, always ends the same", async () => {
  let pages = 0;
  const { result, runs } = await replay(
    async (ctx: Context<{ unit: string }>, { city }: { city: string }) => {
      const page = await ctx.step("page", async () => {
        pages += 1;
        await new Promise((resolve) => setTimeout(resolve, 1));
        return `${city} in ${ctx.env.unit}`;
      });
      await ctx.sleep("a year", 365 * DAY);
      const answer = await ctx.ask("go on", question);
      const sides = await ctx.all(["left", "right"], async (side, key) => {
        await side.sleep("a minute", MINUTE);
        return side.step("paint", () => key.toUpperCase());
      });
      const found = await (await ctx.start(other, {})).result();
      return { page, answer, sides, found };
    },
    { city: "Kiel" },
    { env: { unit: "metres" }, answers: { "go on": { yes: true } }, jobs: { other_job: { days: 3 } } },
  );
  expect(result).toEqual({
    page: "Kiel in metres",
    answer: { action: "accept", content: { yes: true } },
    sides: ["LEFT", "RIGHT"],
    found: { days: 3 },
  });
  expect(runs).toBeGreaterThan(100);
  expect(pages).toBeGreaterThan(runs); // once in each run, and again if the step's record was lost
});

test("a step that changes a variable outside of itself is refused", async () => {
  const sum = async (ctx: Context) => {
    let total = 0;
    await ctx.sleep("begin", SECOND);
    await ctx.step("add", () => {
      total += 5;
    });
    return total;
  };
  await expect(replay(sum, {})).rejects.toThrow(
    /^step "add" at testing\/replay\.test\.ts:\d+ changes total, a variable/,
  );
});

test("a step that nothing awaits is reported, even if it succeeds", async () => {
  const background = async (ctx: Context) => {
    void ctx.step("note", () => "noted");
    return ctx.step("work", () => "done");
  };
  await expect(replay(background, {})).rejects.toThrow('nothing awaits step "note": what comes of it is lost');
  const later = async (ctx: Context) => {
    const note = ctx.step("note", () => "noted");
    await ctx.sleep("a while", SECOND);
    return [await note, await Promise.all([ctx.step("a", () => 1), ctx.step("b", () => 2).then((n) => n)])];
  };
  expect((await replay(later, {})).result).toEqual(["noted", [1, 2]]);
});

test("a result that differs after a death is reported with the point of the death", async () => {
  let lives = 0;
  const counted = async (ctx: Context) => {
    const life = await ctx.step("life", () => ++lives);
    await ctx.sleep("a second", SECOND);
    return life;
  };
  await expect(replay(counted, {})).rejects.toThrow(/the function returned \d+\. Undisturbed it returned 1\./);
});

test("a step that itself returns something else in each run is named, with the advice that fits it", async () => {
  const names = async (ctx: Context) => {
    const id = await ctx.step("make id", () => randomUUID());
    await ctx.sleep("a second", SECOND);
    return id;
  };
  const error: Error = await replay(names, {}).catch((thrown) => thrown);
  expect(error.message).toMatch(
    /The step "make id" itself returned "[^"]+" in one run and "[^"]+" in the other: each run executes it\. Give it a stand-in, or use ctx\.now\(\) or ctx\.uuid\(\)$/,
  );
});

test("the function of the template for a tool ends the same wherever its worker dies", async () => {
  vi.doMock("durable-mcp-edge", () => import("../core/index.ts"));
  try {
    const { exampleToolRun } = await import("../cli/template/tool/example-tool.run.ts");
    const { result } = await replay(exampleToolRun, { subject: "tea" });
    expect(result).toEqual({ text: "tea: begun at 2026-01-01T00:00:00.000Z" });
  } finally {
    vi.doUnmock("durable-mcp-edge");
  }
});

test("a function may return nothing", async () => {
  expect((await replay((ctx: Context) => ctx.sleep("a second", SECOND), {})).result).toBeUndefined();
});

test("if a function throws the same error in all runs, replay throws it", async () => {
  const refuse = async (ctx: Context) => {
    const { action } = await ctx.ask("go on", question);
    if (action === "decline") throw new Error("declined: nothing was done");
  };
  await expect(replay(refuse, {}, { answers: { "go on": { action: "decline" } } })).rejects.toThrow(
    "declined: nothing was done",
  );
});

test("a broken rule is reported with the engine's explanation", async () => {
  const fanOut = (ctx: Context) =>
    Promise.all(
      [30, 10].map(async (ms) => {
        await ctx.step(`fetch ${ms}`, () => new Promise((resolve) => setTimeout(resolve, ms)));
        return ctx.step("title", () => ms);
      }),
    );
  await expect(replay(fanOut, {})).rejects.toThrow('"title" is called again, and its place among');
});

test("an upstream that never answers is waited for on the jumping clock", async () => {
  const { result } = await replay(
    async (ctx: Context) =>
      ctx.race({
        page: (branch) => branch.step("page", () => new Promise<string>(() => {})),
        late: (branch) => branch.sleep("a day", DAY),
      }),
    {},
    { runs: 5 },
  );
  expect(result).toEqual({ winner: "late", value: undefined });
});

test("a question without an answer, and a job without an outcome, are reported by name", async () => {
  await expect(replay((ctx: Context) => ctx.ask("go on", question), {}, { runs: 3 })).rejects.toThrow("nobody answers");
  await expect(replay((ctx: Context) => ctx.start(other, {}), {})).rejects.toThrow("{ jobs: { other_job: … } }");
});

test("a step with atMostOnce may have an unknown outcome, and runs in which it does must all end the same", async () => {
  let charges = 0;
  const code = (withTime: boolean) => async (ctx: Context) => {
    await ctx.sleep("begin", SECOND);
    const charged = await ctx
      .step("charge", () => String(++charges > 0), { atMostOnce: true })
      .catch((error: Error) => error.message.slice(-18));
    const lives = withTime ? await ctx.step("lives", () => ++charges) : 0;
    return { charged, lives };
  };
  expect((await replay(code(false), {})).result).toEqual({ charged: "true", lives: 0 });
  // The same holds for a function that does not catch the error.
  const thrown = (ctx: Context) => ctx.step("charge", () => "ok", { atMostOnce: true });
  expect((await replay(thrown, {})).result).toBe("ok");
  await expect(replay(code(true), {})).rejects.toThrow("the function returned");
});

test.each<[what: string, says: RegExp, code: DurableFunction<object, unknown>]>([
  [
    "a variable that a step changes and a sleep loses",
    /^step "add" at testing\/replay\.test\.ts:\d+ changes total, a variable/,
    async (ctx) => {
      let total = 0;
      await ctx.step("add", () => {
        total += 5;
      });
      await ctx.sleep("a while", MINUTE);
      return total;
    },
  ],
  [
    "a name made outside of steps, and used before and after a sleep",
    /^run again from its records, the function did something else: step "send" got order/,
    async (ctx) => {
      const order = newOrder();
      const sent = await ctx.step("send", () => order);
      await ctx.sleep("a while", MINUTE);
      return sent === order;
    },
  ],
  [
    "a count that checks keep outside of themselves, and that therefore never reaches three",
    /^until "third look" at testing\/replay\.test\.ts:\d+ changes looks, a variable/,
    async (ctx) => {
      let looks = 0;
      await ctx.until("third look", { every: 30 * SECOND }, () => ++looks === 3);
      return looks;
    },
  ],
])("replay finds %s", async (_what, says, code) => {
  const error = await replay(code, {}).catch((thrown: Error) => thrown);
  const message = expect.stringMatching(says);
  expect(error).toMatchObject({ name: "NondeterminismError", message });
});

test("a step may take real time, alone and in a race with a sleep", async () => {
  const slow = (ms: number) => new Promise<string>((resolve) => setTimeout(resolve, ms, "there"));
  const alone = await replay((ctx: Context) => ctx.step("slow", () => slow(150)), {}, { runs: 2 });
  expect(alone.result).toBe("there");
  const raced = await replay(
    (ctx: Context) =>
      ctx.race({ page: (on) => on.step("page", () => slow(400)), late: (on) => on.sleep("a minute", MINUTE) }),
    {},
    { runs: 2 },
  );
  expect(raced.result).toEqual({ winner: "page", value: "there" });
});

test("a step may take real time over a connection that was open before", async () => {
  const server = createServer((socket) => socket.on("data", () => setTimeout(() => socket.write("there"), 300)));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  await once(socket, "connect");
  try {
    const query = async () => {
      socket.write("?");
      return String((await once(socket, "data"))[0]);
    };
    const asks = (ctx: Context) => ctx.step("query", query, { timeout: 30 * SECOND, retry: false });
    expect((await replay(asks, {}, { runs: 2 })).result).toBe("there");
  } finally {
    socket.destroy();
    server.close();
  }
});

test("the inputs of a step are compared with those that it gets when the function runs again", async () => {
  const orders: string[] = [];
  const pays = async (ctx: Context) => {
    const order = newOrder();
    await ctx.step("create", () => void orders.push(order));
    await ctx.sleep("a while", MINUTE);
    await ctx.step("pay", () => void orders.push(order));
  };
  await expect(replay(pays, {})).rejects.toThrow(/step "create" got order = "[^"]+", and "[^"]+" when the function/);
  const counts = async (ctx: Context) => {
    let sent = 0;
    await ctx.step("count", () => {
      sent += 1;
    });
    await ctx.step("send", () => void orders.push(`${sent} messages`));
  };
  await expect(replay(counts, {})).rejects.toThrow(/^step "count" at .*:\d+ changes sent, a variable/);
  const run = implement(defineJob({ kind: "pays", args: z.object({}), id: () => "x" }), pays);
  await expect(replay(run, {})).rejects.toThrow('step "create" got order');
});

test("an endless loop is reported with its line", async () => {
  const polls = async (ctx: Context) => {
    for (;;) await ctx.step("look", () => "not yet");
  };
  await expect(replay(polls, {})).rejects.toThrow(
    /^ctx\.step\("look"\) at testing\/replay\.test\.ts:\d+ comes after 1000 calls of ctx: does its loop end\? .*ctx\.continueAs/,
  );
});

test("a function may make as many calls as its test allows", async () => {
  const crawls = async (ctx: Context) => {
    for (let page = 1; page < 4; page++) await ctx.step("page", () => page);
    return ctx.step("end", () => "done");
  };
  await expect(replay(crawls, {}, { calls: 3 })).rejects.toThrow("comes after 3 calls of ctx");
  expect((await replay(crawls, {}, { calls: 4 })).result).toBe("done");
});

test("a step that fails and that nothing awaits is reported", async () => {
  const forgets = async (ctx: Context) => {
    void ctx.step("note", () => Promise.reject(new TypeError("no")));
    return ctx.step("work", () => "done");
  };
  await expect(replay(forgets, {})).rejects.toThrow('step "note" has failed, and nothing awaits it');
});

describe("an implementation is run as a worker runs it", () => {
  const definition = { kind: "k", args: z.object({ q: z.string().trim() }), id: () => "x" };

  test("with the deadline of its definition, which the option replaces", async () => {
    const sleeps = async (ctx: Context) => ctx.sleep("two days", 2 * DAY);
    const words = expect.objectContaining({ message: expect.stringMatching(/timed out|deadline/) });
    await expect(replay(implement(defineJob(definition), sleeps), { q: "a" })).rejects.toEqual(words);
    const deadline = (_args: object, now: number) => now + 1.5 * DAY;
    const run = implement(defineJob({ ...definition, deadline }), sleeps);
    await expect(replay(run, { q: "a" })).rejects.toEqual(words);
    await replay(run, { q: "a" }, { deadline: 3 * DAY, runs: 3 });
  });

  test("with the arguments of its next run as the schema makes them", async () => {
    const run = implement(defineJob(definition), async (ctx: JobContext<{ q: string }>, { q }) => {
      if (q === "a") return ctx.continueAs({ q: "b " });
      return q;
    });
    expect((await replay(run, { q: "a" })).result).toBe("b");
  });

  test("with the defaults of the variables that it needs", async () => {
    const env = z.object({ UNIT: z.string().default("metres"), LIST: z.string().transform((list) => list.split(",")) });
    const run = implement(defineJob(definition), async (ctx) => ctx.env, { env });
    expect((await replay(run, { q: "a" }, { env: { LIST: "a,b" } })).result).toEqual({
      UNIT: "metres",
      LIST: ["a", "b"],
    });
    // The option may also be the schema's output.
    const made = { UNIT: "feet", LIST: ["a"] };
    expect((await replay(run, { q: "a" }, { env: made })).result).toEqual(made);
  });
});

test("arguments and outcomes of other jobs that do not fit their definitions are refused", async () => {
  const child = defineJob({
    kind: "child",
    args: z.object({ size: z.number() }),
    result: z.object({ area: z.number() }),
    id: ({ size }) => size,
  });
  const starts = (size: unknown) => async (ctx: Context) => (await ctx.start(child, { size: size as number })).result();
  expect((await replay(starts(2), {}, { jobs: { child: { area: 4 } } })).result).toEqual({ area: 4 });
  const wrongArgs = replay(starts("2"), {}, { jobs: { child: { area: 4 } } });
  await expect(wrongArgs).rejects.toThrow(/^child was not started: .*expected number/s);
  const outcome = replay(starts(2), {}, { jobs: { child: { area: "4" } } });
  await expect(outcome).rejects.toThrow("replay: the outcome of the job child does not fit its result: area: ");
});

test("an answer that the form of its question refuses is reported", async () => {
  const properties = { yes: { type: "boolean" } };
  const asks = (ctx: Context) =>
    ctx.ask("go on", { message: "Go on?", requestedSchema: { type: "object", properties, required: ["yes"] } });
  const wrongAnswer = replay(asks, {}, { answers: { "go on": { yes: "true" } } });
  await expect(wrongAnswer).rejects.toThrow('replay: the answer to "go on" does not fit the question: yes: ');
  expect((await replay(asks, {}, { answers: { "go on": { yes: true } } })).result).toMatchObject({
    action: "accept",
  });
});

test("an agreement to a question without fields needs no content, as at the edge", async () => {
  const asks = async (ctx: Context) => {
    const requestedSchema = { type: "object" as const, properties: {} };
    return ctx.ask("go on", { message: "Go on?", requestedSchema });
  };
  const answers = { "go on": { action: "accept" } };
  expect((await replay(asks, {}, { answers })).result).toEqual({ action: "accept", content: {} });
});
