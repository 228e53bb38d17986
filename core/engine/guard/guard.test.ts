/** What a function may not do outside of steps, and what it writes instead. */
import { generateKeyPairSync, randomBytes, randomInt, randomUUID } from "node:crypto";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { tmpdir, uptime as osUptime } from "node:os";
import { join } from "node:path";
import { hrtime, uptime } from "node:process";
import { setTimeout as timer } from "node:timers";
import { scheduler, setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import * as z from "zod";
import { replay } from "../../../testing/replay.ts";
import { SimulatedJob } from "../../../testing/simulation/simulated-job.ts";
import { type Context, HOUR, MINUTE, NonRetryableError } from "../../author/context.ts";
import { outputId } from "../../resonate/ids.ts";

type Fn = (ctx: Context) => Promise<unknown>;

const refused = (words: string | RegExp) => ({
  kind: "failed",
  error: expect.objectContaining({ name: "NondeterminismError", message: expect.stringMatching(words) }),
});

const calls: Record<string, [call: () => unknown, words: RegExp]> = {
  "Date.now": [() => Date.now(), /^Date\.now\(\) was called .* Write ctx\.now\(\)/],
  "new Date": [() => new Date(), /^new Date\(\) was called .* Write ctx\.now\(\).*: new Date\(ctx\.now\(\)\)/],
  "Date called": [() => Date(), /^Date\(\) was called/],
  "performance.timeOrigin": [() => performance.timeOrigin, /^performance\.timeOrigin was read .* Write ctx\.now\(\)/],
  "performance.toJSON": [() => performance.toJSON(), /^performance\.toJSON\(\) was called/],
  "process.uptime": [() => process.uptime(), /^process\.uptime\(\) was called/],
  "DateTimeFormat.format": [
    () => new Intl.DateTimeFormat("en").format(),
    /^Intl\.DateTimeFormat\(\)\.format\(\) was called .* Write ctx\.now\(\).*: format\(ctx\.now\(\)\)/,
  ],
  "DateTimeFormat.format, handed on": [
    () => [undefined].map(new Intl.DateTimeFormat("en").format as never),
    /^Intl\.DateTimeFormat\(\)\.format\(\) was called/,
  ],
  "DateTimeFormat.formatToParts": [() => new Intl.DateTimeFormat("en").formatToParts(), /^Intl\.DateTimeFormat/],
  "performance.now": [() => performance.now(), /^performance\.now\(\) was called .* Write ctx\.now\(\)/],
  hrtime: [() => process.hrtime(), /^process\.hrtime\(\) was called/],
  "hrtime.bigint": [() => process.hrtime.bigint(), /^process\.hrtime\.bigint\(\) was called/],
  "Math.random": [() => Math.random(), /^Math\.random\(\) was called .* Write ctx\.random\(\)/],
  randomUUID: [() => crypto.randomUUID(), /^crypto\.randomUUID\(\) was called .* Write ctx\.uuid\(\)/],
  getRandomValues: [() => crypto.getRandomValues(new Uint8Array(1)), /^crypto\.getRandomValues\(\) was called/],
  fetch: [() => void fetch("data:,x"), /^fetch was called .* Write await ctx\.step\("fetch", /],
  setTimeout: [() => setTimeout(() => {}, 1), /^setTimeout was called .* Write await ctx\.sleep\("a while", ms\)/],
  setImmediate: [() => setImmediate(() => {}), /^setImmediate was called .* Write await ctx\.sleep/],
  "AbortSignal.timeout": [
    () => AbortSignal.timeout(1),
    /^AbortSignal\.timeout\(\) was called .* Write await ctx\.timeout/,
  ],
  "subtle.generateKey": [
    () => crypto.subtle.generateKey({ name: "AES-GCM", length: 128 }, false, ["encrypt"]),
    /^crypto\.subtle\.generateKey\(\) was called/,
  ],
  setInterval: [() => setInterval(() => {}, 1), /^setInterval was called .* Write await ctx\.until/],
  "randomUUID of node:crypto": [() => randomUUID(), /^randomUUID\(\) of node:crypto was called .* Write ctx\.uuid\(\)/],
  "randomBytes of node:crypto": [
    () => randomBytes(4),
    /^randomBytes\(\) of node:crypto was called .* Write ctx\.random/,
  ],
  "randomInt of node:crypto": [() => randomInt(4), /^randomInt\(\) of node:crypto was called/],
  "generateKeyPairSync of node:crypto": [
    () => generateKeyPairSync("ed25519"),
    /^generateKeyPairSync\(\) of node:crypto was called .* Use a step/,
  ],
  "uptime of node:os": [() => osUptime(), /^uptime\(\) of node:os was called/],
  "uptime of node:process": [() => uptime(), /^process\.uptime\(\) was called/],
  "hrtime of node:process": [() => hrtime.bigint(), /^process\.hrtime\.bigint\(\) was called/],
  "setTimeout of node:timers": [() => timer(() => {}, 1), /^setTimeout\(\) of node:timers was called/],
  "setTimeout of node:timers/promises": [
    () => pause(1),
    /^setTimeout\(\) of node:timers\/promises was called .* Write await ctx\.sleep/,
  ],
  "setTimeout, promisified": [() => promisify(setTimeout)(1), /^setTimeout\(\) of node:timers\/promises was called/],
  "scheduler of node:timers/promises": [() => scheduler.wait(1), /^scheduler\.wait\(\) was called/],
  "get of node:http": [
    () => void get("http://127.0.0.1:9").on("error", () => {}),
    /^get\(\) of node:http was called .* Write await ctx\.step/,
  ],
};

test.each(Object.entries(calls))(
  "%s: refused with its source line, even if the error is caught, and allowed in steps",
  async (_what, [call, words]) => {
    const outside: Fn = async (ctx) => {
      await ctx.step("first", () => 1);
      try {
        call();
      } catch {
        // A library may catch it.
      }
      return "done";
    };
    expect(await new SimulatedJob(outside).toEnd()).toEqual(refused(words));
    expect(await new SimulatedJob(outside).toEnd()).toEqual(
      refused(/ outside of a step at guard\/guard\.test\.ts:\d+\./),
    );
    const inside: Fn = async (ctx) => {
      await ctx.step("free", () => {
        clearInterval(call() as never);
      });
      return "done";
    };
    expect(await new SimulatedJob(inside).toEnd()).toEqual({ kind: "complete", value: "done" });
    expect(() => clearInterval(call() as never)).not.toThrow();
  },
);

test("a library that the function calls is guarded too, and the message names its caller as well", async () => {
  const library = join(await mkdtemp(join(tmpdir(), "guard-")), "node_modules/stamps");
  await mkdir(library, { recursive: true });
  await writeFile(join(library, "stamp.mjs"), "export const stamp = async () => Date.now();\n");
  const { stamp } = await import(/* @vite-ignore */ join(library, "stamp.mjs"));
  const outside: Fn = async (ctx) => {
    await ctx.step("first", () => 1);
    return stamp();
  };
  expect(await new SimulatedJob(outside).toEnd()).toEqual(
    refused(
      /^Date\.now\(\) was called outside of a step at guard\/guard\.test\.ts:\d+ \(through stamps\/stamp\.mjs\S*:1\)\. Write ctx\.now/,
    ),
  );
  expect(await new SimulatedJob((ctx: Context) => ctx.step("stamp", stamp)).toEnd()).toMatchObject({
    kind: "complete",
  });
});

test("dates made from values are allowed, and the log and the engine are not guarded", async () => {
  const lines: number[] = [];
  const note = () => lines.push(Date.now());
  const log = { debug: note, info: note, warn: note, error: note };
  const fn: Fn = async (ctx) => {
    ctx.log.info("begun");
    ctx.progress("begun");
    await ctx.sleep("a minute", MINUTE);
    class Day extends Date {}
    const dates = [new Date(0), new Date("1970-01-01"), new Date(1970, 0, 1), new Day(0)];
    const isDate = dates.every((date) => date instanceof Date) && dates[0]?.constructor === Date;
    const inWords = new Intl.DateTimeFormat("en", { timeZone: "UTC" });
    const { format } = inWords;
    if (format(0) !== "1/1/1970" || inWords.formatToParts(0).length !== 5) throw new Error("not formatted");
    if (inWords.format !== format) throw new Error("another function");
    return [isDate, dates[0]?.getTime(), dates[3] instanceof Day, Date.UTC(1970, 0, 1), Date.name, Date.length];
  };
  const outcome = await new SimulatedJob(fn, { log }).toEnd();
  expect(outcome).toEqual({ kind: "complete", value: [true, 0, true, 0, "Date", 7] });
  expect(lines).toHaveLength(1);
});

test("the steps of one job are not guarded while another job's function runs", async () => {
  const busy =
    (name: string): Fn =>
    async (ctx) => {
      for (let i = 0; i < 20; i++) {
        await ctx.step(name, async () => {
          for (let k = 0; k < 50; k++) await Promise.resolve(Date.now());
          return new Promise((resolve) => setTimeout(resolve, 1));
        });
      }
      return name;
    };
  const ends = await Promise.all(["a", "b", "c"].map((name) => replay(busy(name), {}, { runs: 1 })));
  expect(ends.map(({ result }) => result)).toEqual(["a", "b", "c"]);
});

// --- what is written instead ------------------------------------------------------------------------------------------

test("a UUID is the same before and after a sleep and in every run, and differs from job to job", async () => {
  const sent: string[] = [];
  const order = async (ctx: Context) => {
    const id = ctx.uuid();
    await ctx.step("create", () => sent.push(`create ${id}`));
    await ctx.sleep("a minute", MINUTE);
    await ctx.step("pay", () => sent.push(`pay ${id}`));
    return id;
  };
  const { result } = await replay(order, {});
  expect(result).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  expect([...new Set(sent)].toSorted()).toEqual([`create ${result}`, `pay ${result}`]);
  const others = await Promise.all(["one", "two"].map((seed) => new SimulatedJob(order, { seed }).toEnd()));
  expect(new Set([result, ...others.map((end) => "value" in end && end.value)]).size).toBe(3);
});

test("ctx.now, ctx.random and ctx.uuid make no requests", async () => {
  const requestsOf = async (calls: number) => {
    const job = new SimulatedJob(async (ctx: Context) => {
      await ctx.step("first", () => 1);
      return Array.from({ length: calls }, () => [ctx.now(), ctx.random(), ctx.uuid()]).length;
    });
    expect(await job.toEnd()).toEqual({ kind: "complete", value: calls });
    return job.cost.requests;
  };
  const requests = await requestsOf(0);
  expect(requests).toBeGreaterThan(0);
  expect(await requestsOf(100)).toBe(requests);
});

test("random numbers differ from call to call and from item to item, and are the same in each run", async () => {
  const { result } = await replay(async (ctx: Context) => {
    const own = [ctx.random(), ctx.random()];
    const items = await ctx.all(["a", "b", "c"], async (item) => {
      await item.sleep("a while", 1_000 * item.random());
      return [item.random(), item.uuid()];
    });
    return [...own, ...items.flat()];
  }, {});
  expect(new Set(result).size).toBe(8);
  for (const value of result) if (typeof value === "number") expect(value >= 0 && value < 1).toBe(true);
});

test("a loop on ctx.now ends, and the time is the server's", async () => {
  const { result } = await replay(async (ctx: Context) => {
    const begun = ctx.now();
    let steps = 0;
    while (ctx.now() < begun + HOUR) {
      steps += await ctx.step("work", () => 1);
      await ctx.sleep("a while", 20 * MINUTE);
    }
    return [steps, ctx.now() - begun >= HOUR];
  }, {});
  expect(result).toEqual([3, true]);
});

test("a loop on ctx.now without an await is refused, with its source line", async () => {
  const hangs: Fn = async (ctx) => {
    const end = ctx.now() + HOUR;
    while (ctx.now() < end);
  };
  const words = /^ctx\.now\(\) at guard\/guard\.test\.ts:\d+ was called 10,000 times without an await/;
  expect(await new SimulatedJob(hangs).toEnd()).toEqual(refused(words));
});

test.each(["now", "random", "uuid"] as const)("ctx.%s in a step is refused", async (call) => {
  const outcome = await new SimulatedJob((ctx: Context) => ctx.step("one", () => ctx[call]())).toEnd();
  expect(outcome).toEqual(refused(`^ctx\\.${call}\\(\\) was called inside of a step`));
});

// --- calls that nothing awaits ----------------------------------------------------------------------------------------

test("a failed step that nothing awaits fails the job", async () => {
  const forgotten: Fn = async (ctx) => {
    void ctx.step("note", () => Promise.reject(new TypeError("no such note")));
    await ctx.sleep("a while", MINUTE);
    return "done";
  };
  expect(await new SimulatedJob(forgotten).toEnd()).toEqual(
    refused(/^step "note" has failed, and nothing awaits it: no such note\. Each call of ctx is awaited/),
  );
  const awaited: Record<string, Fn> = {
    "with await, later": async (ctx) => {
      const note = ctx.step("note", () => Promise.reject(new TypeError("no")));
      await ctx.sleep("a while", MINUTE);
      return note.catch(() => "done");
    },
    "with then": async (ctx) => {
      ctx.step("note", () => Promise.reject(new TypeError("no"))).then(undefined, () => {});
      return "done";
    },
    "in a list": async (ctx) => {
      await Promise.allSettled([ctx.step("note", () => Promise.reject(new TypeError("no")))]);
      return "done";
    },
  };
  for (const [how, fn] of Object.entries(awaited)) {
    expect(await new SimulatedJob(fn).toEnd(), how).toEqual({ kind: "complete", value: "done" });
  }
});

const month = { kind: "month", args: { parse: (args: unknown) => args } } as never;
const minute = (ctx: Context) => ctx.sleep("a minute", MINUTE);

test.each<[call: string, make: (ctx: Context) => Promise<unknown>, words: RegExp]>([
  ["start", (ctx) => ctx.start(month, {}), /^start "start month" has failed, and nothing awaits it: no such month\. /],
  [
    "timeout",
    (ctx) => ctx.timeout(1_000, minute),
    /^race "timeout" has failed, .*: ctx\.timeout: "timeout" took longer/,
  ],
  ["spend", (ctx) => ctx.spend(2, { of: "cents" }), /^spend "cents" has failed, and nothing awaits it: .* cents/],
  [
    "ask",
    (ctx) => ctx.ask("age", { message: "Your age?", schema: z.object({ age: z.number() }) }),
    /^ask "age" has failed, and nothing awaits it: the answer to "age" does not fit/,
  ],
  [
    "callback",
    (ctx) => ctx.callback("payment", { schema: z.object({ paid: z.boolean() }) }).result,
    /^callback "payment" has failed, and nothing awaits it: what was sent to the callback "payment" does not fit/,
  ],
])("a ctx.%s that fails and that nothing awaits fails the job", async (_call, make, words) => {
  const ended = async (fn: Fn) => {
    const job = new SimulatedJob(fn, {
      start: () => Promise.reject(new NonRetryableError("no such month")),
      budget: { cents: { limit: 1 } },
    });
    for (;;) {
      const end = await job.next();
      if (end.kind !== "asleep") return end;
      job.answer("age", { action: "accept", content: { age: "old" } });
      await job.send("payment", { paid: "much" });
    }
  };
  const forgotten: Fn = async (ctx) => {
    void make(ctx);
    await ctx.sleep("a while", HOUR);
    return "done";
  };
  const awaited: Fn = async (ctx) => {
    const made = make(ctx);
    await ctx.sleep("a while", HOUR);
    return made.catch(() => "done");
  };
  expect(await ended(forgotten)).toEqual(refused(words));
  expect(await ended(awaited)).toEqual({ kind: "complete", value: "done" });
});

test("globals are replaced only once", async () => {
  await new SimulatedJob(async () => 1).toEnd();
  const getter = Object.getOwnPropertyDescriptor(Intl.DateTimeFormat.prototype, "format")?.get;
  const before = [Date, fetch, setTimeout, Date.now, process.hrtime];
  await new SimulatedJob(async () => 1).toEnd();
  expect([Date, fetch, setTimeout, Date.now, process.hrtime]).toEqual(before);
  expect(Object.getOwnPropertyDescriptor(Intl.DateTimeFormat.prototype, "format")?.get).toBe(getter);
});

// --- partial results --------------------------------------------------------------------------------------------------

test("each partial result is stored once, in the order of the calls, wherever the worker dies", async () => {
  const tells = async (ctx: Context) => {
    await ctx.emit({ n: 1 });
    await ctx.sleep("a while", MINUTE);
    await ctx.all(["a", "b"], (item, key) => item.emit(key));
    await ctx.emit(null);
    return "done";
  };
  expect((await replay(tells, {})).result).toBe("done");
  const simulated = new SimulatedJob(tells);
  await simulated.next();
  simulated.forget();
  await simulated.toEnd();
  const outputs = [1, 2, 3, 4].map((n) => outputId("job", n));
  const told = simulated.sim.promises().filter((id) => [...outputs, outputId("job", 5)].includes(id));
  const values = told.map((id) => atob(simulated.sim.get(id)?.param.data ?? ""));
  expect([told, values]).toEqual([outputs, ['{"n":1}', '"a"', '"b"', "null"]]);
});

test.each<[what: string, value: unknown, words: RegExp]>([
  ["nothing", undefined, /^ctx\.emit takes a value of up to 50000 characters of JSON, and got nothing/],
  ["too much", "x".repeat(60_000), /and got 60002 characters of JSON/],
  ["a date", new Date(0), /^ctx\.emit: its value returned a Date/],
])("ctx.emit refuses %s", async (_what, value, words) => {
  expect(await new SimulatedJob((ctx: Context) => ctx.emit(value)).toEnd()).toEqual(refused(words));
});
