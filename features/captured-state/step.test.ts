import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { type Context, HOUR, MINUTE, SECOND } from "../../core/author/index.ts";
import { replay } from "../../testing/replay.ts";
import { SimulatedJob } from "../../testing/simulation/simulated-job.ts";
import { refuseCapturedState } from "./step.ts";

type Code = (ctx: Context) => Promise<unknown>;

const endOf = (code: Code) => new SimulatedJob(code, { deadline: HOUR, steps: [refuseCapturedState] }).toEnd();

/** Lets other branches go on. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

const refused: Record<string, [says: string, code: Code]> = {
  "a list to which a step adds": [
    'step "send#2" at captured-state/step.test.ts:LINE changes failed[0], a variable of the function',
    async (ctx) => {
      const failed: number[] = [];
      for (const i of [1, 2, 3]) {
        await ctx.step("send", async () => {
          if (i === 2) failed.push(i);
        });
        await ctx.sleep("pause", 50);
      }
      return { failed };
    },
  ],
  "a sum": [
    'step "add" at captured-state/step.test.ts:LINE changes sum',
    async (ctx) => {
      let sum = 0;
      for (const i of [1, 2]) {
        await ctx.step("add", () => {
          sum += i;
        });
        await ctx.sleep("pause", MINUTE);
      }
      return sum;
    },
  ],
  "a token": [
    'step "log in" at captured-state/step.test.ts:LINE changes token',
    async (ctx) => {
      let token = "none";
      await ctx.sleep("first", MINUTE);
      await ctx.step("log in", async () => {
        token = "secret";
      });
      await ctx.sleep("pause", MINUTE);
      return ctx.step("use", () => token);
    },
  ],
  "a cursor": [
    'step "page" at captured-state/step.test.ts:LINE changes cursor',
    async (ctx) => {
      let cursor: string | undefined;
      let pages = 0;
      do {
        await ctx.step("page", async () => {
          cursor = pages < 2 ? `page ${pages + 2}` : undefined;
        });
        pages += 1;
      } while (cursor !== undefined);
      return pages;
    },
  ],
  "a count of checks": [
    'until "third look" at captured-state/step.test.ts:LINE changes looks',
    async (ctx) => {
      let looks = 0;
      return ctx.until("third look", { every: 30 * SECOND }, () => ++looks === 3);
    },
  ],
  "a count of attempts": [
    'step "work" at captured-state/step.test.ts:LINE changes state.attempts',
    async (ctx) => {
      const state = { attempts: 0 };
      return ctx.step("work", () => {
        state.attempts += 1;
        if (state.attempts < 3) throw new Error("not yet");
        return state.attempts;
      });
    },
  ],
  "a Map and a Set, behind a helper": [
    'step "fill" at captured-state/step.test.ts:LINE changes byName',
    async (ctx) => {
      const byName = new Map<string, number>();
      const note = (name: string) => byName.set(name, 1);
      await ctx.step("fill", () => void note("a"));
      await ctx.sleep("pause", MINUTE);
      return byName.size;
    },
  ],
  "what a step adds to the result of another": [
    'step "more" at captured-state/step.test.ts:LINE changes list[1]',
    async (ctx) => {
      const list = await ctx.step("list", () => [1]);
      await ctx.step("more", () => void list.push(2));
      await ctx.sleep("pause", MINUTE);
      return list;
    },
  ],
  "a variable that decides what is called": [
    'step "send" at captured-state/step.test.ts:LINE changes hasFailed',
    async (ctx) => {
      let hasFailed = false;
      await ctx.step("send", () => {
        hasFailed = true;
      });
      if (hasFailed) await ctx.step("report", () => 1);
      return "done";
    },
  ],
  "an item's step beside others": [
    'step "all/b/work" at captured-state/step.test.ts:LINE changes found[0]',
    async (ctx) => {
      const found: string[] = [];
      let done = 0;
      await ctx.all(["a", "b"], async (ctx, item) => {
        await ctx.step("work", async () => {
          await turns(1);
          if (item === "b") found.push(item);
        });
        done += 1;
      });
      return { found: found.length > 0, done };
    },
  ],
};

test.each(Object.entries(refused))("%s is refused at the first run, and in a replay", async (_what, [says, code]) => {
  const [before = "", after = ""] = says.split("LINE");
  const quoted = (text: string) => text.replace(/[[\].]/g, "\\$&");
  const refusal = expect.objectContaining({
    name: "NondeterminismError",
    message: expect.stringMatching(new RegExp(`^${quoted(before)}\\d+${quoted(after)}`)),
  });
  expect(await endOf(code)).toEqual({ kind: "failed", error: refusal });
  await expect(replay(code, {}, { runs: 1 })).rejects.toEqual(refusal);
});

/** What a module shares with all its jobs. */
const cache = new Map<string, string>();
const stats = { calls: 0, names: [] as string[] };
let requests = 0;

class Pool extends EventEmitter {
  used = 0;
  query(text: string) {
    this.used += 1;
    return text.length;
  }
}

const pool = new Pool();

class Log {
  lines: string[] = [];
  child = () => Object.assign(new Log(), { lines: this.lines });
  info = (line: string) => void this.lines.push(line);
}

const moduleLog = new Log();

function client() {
  let calls = 0;
  const state = { calls };
  return { state, call: async () => (state.calls = ++calls) };
}

const moduleClient = client();

const innocent: Record<string, [result: unknown, code: Code]> = {
  "a pool, which a local variable leads to": [
    4,
    async (ctx) => {
      const own = pool;
      const parts = { own, table: "jobs" };
      const rows = await ctx.step("query", () => own.query("text"));
      await ctx.step("again", () => parts.own.query(parts.table));
      await ctx.sleep("pause", MINUTE);
      return rows;
    },
  ],
  "a module's cache": [
    "a token",
    async (ctx) => {
      const tokens = cache;
      const token = await ctx.step("log in", async () => {
        tokens.set("token", "a token");
        return "a token";
      });
      await ctx.sleep("pause", MINUTE);
      return token;
    },
  ],
  "a module's counts": [
    "done",
    async (ctx) => {
      const counts = stats;
      await ctx.step("work", () => {
        requests += 1;
        counts.calls += 1;
        counts.names.push("work");
      });
      await ctx.sleep("pause", MINUTE);
      return "done";
    },
  ],
  "a child logger": [
    "done",
    async (ctx) => {
      const log = moduleLog.child();
      await ctx.step("work", () => log.info("works"));
      await ctx.sleep("pause", MINUTE);
      return "done";
    },
  ],
  "clients with a state of their own": [
    [1, true],
    async (ctx) => {
      const own = client();
      const calls = await ctx.step("call", () => own.call());
      const more = await ctx.step("call the module's", () => moduleClient.call());
      await ctx.sleep("pause", MINUTE);
      return [calls, more > 0];
    },
  ],
  "counts of the function itself, between its calls and in other branches": [
    { done: 3, names: ["a", "b", "c"] },
    async (ctx) => {
      let done = 0;
      const names: string[] = [];
      await ctx.all(["a", "b", "c"], async (ctx, item) => {
        names.push(item);
        await ctx.step("slow", async () => {
          await turns(item === "a" ? 100 : 1);
          return `${done} of ${names.length}`;
        });
        done += 1;
        await ctx.sleep("pause", MINUTE);
      });
      return { done, names };
    },
  ],
  "what the function changes after a failed attempt": [
    ["once"],
    async (ctx) => {
      const errors: string[] = [];
      await ctx
        .step("fails", () => Promise.reject(new Error("once")), { retry: false })
        .catch((error: Error) => errors.push(error.message));
      await ctx.sleep("pause", MINUTE);
      await ctx.step("reports", () => errors.length);
      return errors;
    },
  ],
  "a step that changes what is its own": [
    [2, 1],
    async (ctx) => {
      const input = [2, 1];
      const found = await ctx.step("sort", () => {
        const own = [...input];
        let swaps = 0;
        own.sort((a, b) => {
          swaps += 1;
          return a - b;
        });
        return swaps > 0 && own.length > 0 ? input : own;
      });
      await ctx.sleep("pause", MINUTE);
      return found;
    },
  ],
  "a change that the step takes back": [
    0,
    async (ctx) => {
      let depth = 0;
      await ctx.step("walk", () => {
        depth += 1;
        depth -= 1;
      });
      await ctx.sleep("pause", MINUTE);
      return depth;
    },
  ],
  "a check that reads a count of the function": [
    2,
    async (ctx) => {
      let rounds = 0;
      for (const name of ["a", "b"]) {
        rounds += 1;
        await ctx.until(name, { every: SECOND }, () => rounds);
      }
      return rounds;
    },
  ],
};

test.each(Object.entries(innocent))("%s: no false alarm", async (_what, [result, code]) => {
  expect(await replay(code, {}, { runs: 3 })).toMatchObject({ result });
});

test("what the function has read of a module's cache, which a step fills: no false alarm", async () => {
  const code: Code = async (ctx) => {
    const known = cache.get("other");
    const token = await ctx.step("log in", () => {
      cache.set("other", "a token");
      return known ?? "a token";
    });
    await ctx.sleep("pause", MINUTE);
    return token;
  };
  expect(await endOf(code)).toEqual({ kind: "complete", value: "a token" });
});
