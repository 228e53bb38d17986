import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import * as z from "zod";
import type { DurableFunction } from "../core/author/implement.ts";
import { implement } from "../core/author/implement.ts";
import { type Context, DAY, MINUTE, SECOND } from "../core/definitions/context.ts";
import { defineJob } from "../core/definitions/job.ts";
import { replayed } from "./replayed.ts";

const question = { message: "Go on?", requestedSchema: { type: "object" as const, properties: {} } };
const other = { kind: "other_job", args: { parse: (value: unknown) => value as object } };

test("a function is killed at every point, over years of sleep, and ends the same", async () => {
  let pages = 0;
  const { result, runs } = await replayed(
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
  expect(pages).toBeGreaterThan(runs); // once a run, and again where its record was lost
});

test("what a step changes outside of itself is refused", async () => {
  const sum = async (ctx: Context) => {
    let total = 0;
    await ctx.sleep("begin", SECOND);
    await ctx.step("add", () => {
      total += 5;
    });
    return total;
  };
  await expect(replayed(sum, {})).rejects.toThrow("run again from its records, the function returned something else");
});

test("a step that nobody awaits is told, though it succeeds", async () => {
  const background = async (ctx: Context) => {
    void ctx.step("note", () => "noted");
    return ctx.step("work", () => "done");
  };
  await expect(replayed(background, {})).rejects.toThrow('nothing awaits step "note": what comes of it is lost');
  const later = async (ctx: Context) => {
    const note = ctx.step("note", () => "noted");
    await ctx.sleep("a while", SECOND);
    return [await note, await Promise.all([ctx.step("a", () => 1), ctx.step("b", () => 2).then((n) => n)])];
  };
  expect((await replayed(later, {})).result).toEqual(["noted", [1, 2]]);
});

test("what differs after a death is said, with the point at which it shows", async () => {
  let lives = 0;
  const counted = async (ctx: Context) => {
    const life = await ctx.step("life", () => ++lives);
    await ctx.sleep("a second", SECOND);
    return life;
  };
  await expect(replayed(counted, {})).rejects.toThrow(/the function returned \d+\. Undisturbed it returned 1\./);
});

test("a function that throws the same everywhere throws that", async () => {
  const refuse = async (ctx: Context) => {
    const { action } = await ctx.ask("go on", question);
    if (action === "decline") throw new Error("declined: nothing was done");
  };
  await expect(replayed(refuse, {}, { answers: { "go on": { action: "decline" } } })).rejects.toThrow(
    "declined: nothing was done",
  );
});

test("a rule that is broken is said in its words", async () => {
  const fanOut = (ctx: Context) =>
    Promise.all(
      [30, 10].map(async (ms) => {
        await ctx.step(`fetch ${ms}`, () => new Promise((resolve) => setTimeout(resolve, ms)));
        return ctx.step("title", () => ms);
      }),
    );
  await expect(replayed(fanOut, {})).rejects.toThrow('"title" is called twice in an order that depends on');
});

test("an upstream that never answers is waited for on the jumping clock", async () => {
  const { result } = await replayed(
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

test("a question that nobody answers, and a job that is not told of, are named", async () => {
  await expect(replayed((ctx: Context) => ctx.ask("go on", question), {}, { runs: 3 })).rejects.toThrow(
    "nobody answers",
  );
  await expect(replayed((ctx: Context) => ctx.start(other, {}), {})).rejects.toThrow("{ jobs: { other_job: … } }");
});

test("a step that is begun at most once may be left unknown, and what the function makes of that is the same", async () => {
  let charges = 0;
  const code = (withTime: boolean) => async (ctx: Context) => {
    await ctx.sleep("begin", SECOND);
    const charged = await ctx
      .step("charge", () => String(++charges > 0), { atMostOnce: true })
      .catch((error: Error) => error.message.slice(-18));
    const lives = withTime ? await ctx.step("lives", () => ++charges) : 0;
    return { charged, lives };
  };
  expect((await replayed(code(false), {})).result).toEqual({ charged: "true", lives: 0 });
  // Thrown on as well.
  const thrown = (ctx: Context) => ctx.step("charge", () => "ok", { atMostOnce: true });
  expect((await replayed(thrown, {})).result).toBe("ok");
  await expect(replayed(code(true), {})).rejects.toThrow("the function returned");
});

test.each<[what: string, code: DurableFunction<object, unknown>]>([
  [
    "what a step changes outside of itself, and a sleep forgets",
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
    async (ctx) => {
      const order = randomUUID();
      const sent = await ctx.step("send", () => order);
      await ctx.sleep("a while", MINUTE);
      return sent === order;
    },
  ],
  [
    "looks that are counted outside of themselves, which never come to three",
    async (ctx) => {
      let looks = 0;
      await ctx.until("third look", { every: 30 * SECOND }, () => ++looks === 3);
      return looks;
    },
  ],
])("replayed finds %s", async (_what, code) => {
  const error = await replayed(code, {}).catch((thrown: Error) => thrown);
  const message = expect.stringMatching(
    /^run again from its records, the function (returned something else|did something else: step "send" got order)/,
  );
  expect(error).toMatchObject({ name: "NondeterminismError", message });
});

test("a step takes as long as it takes, beside nothing and beside a sleep", async () => {
  const slow = (ms: number) => new Promise<string>((resolve) => setTimeout(resolve, ms, "there"));
  const alone = await replayed((ctx: Context) => ctx.step("slow", () => slow(150)), {}, { runs: 2 });
  expect(alone.result).toBe("there");
  const raced = await replayed(
    (ctx: Context) =>
      ctx.race({ page: (on) => on.step("page", () => slow(400)), late: (on) => on.sleep("a minute", MINUTE) }),
    {},
    { runs: 2 },
  );
  expect(raced.result).toEqual({ winner: "page", value: "there" });
});

test("what a step is given is held side by side with what it is given when the function runs again", async () => {
  const orders: string[] = [];
  const pays = async (ctx: Context) => {
    const order = randomUUID();
    await ctx.step("create", () => void orders.push(order));
    await ctx.sleep("a while", MINUTE);
    await ctx.step("pay", () => void orders.push(order));
  };
  await expect(replayed(pays, {})).rejects.toThrow(/step "create" got order = "[^"]+", and "[^"]+" when the function/);
  const counts = async (ctx: Context) => {
    let sent = 0;
    await ctx.step("count", () => {
      sent += 1;
    });
    await ctx.step("send", () => void orders.push(`${sent} messages`));
  };
  await expect(replayed(counts, {})).rejects.toThrow('step "send" got sent = 1, and 0 when the function ran again');
  const run = implement(defineJob({ kind: "pays", args: z.object({}), id: () => "x" }), pays);
  await expect(replayed(run, {})).rejects.toThrow('step "create" got order');
});

test("a loop without end is told, with its line", async () => {
  const polls = async (ctx: Context) => {
    for (;;) await ctx.step("look", () => "not yet");
  };
  await expect(replayed(polls, {})).rejects.toThrow(
    /^ctx\.step\("look"\) at testing\/replayed\.test\.ts:\d+ comes after 1000 calls of ctx: does its loop end\? .*ctx\.continueAs/,
  );
});

test("a step that fails and that nobody awaits is told", async () => {
  const forgets = async (ctx: Context) => {
    void ctx.step("note", () => Promise.reject(new TypeError("no")));
    return ctx.step("work", () => "done");
  };
  await expect(replayed(forgets, {})).rejects.toThrow('step "note" has failed, and nothing awaits it');
});
