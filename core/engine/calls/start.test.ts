/** What becomes of the jobs that a function starts when it ends without a result, or a branch of it loses. */
import { expect, test } from "vitest";
import { trial } from "../../../testing/simulation/trial.ts";
import { type Context, DAY, HOUR, type JobContext, MINUTE, NonRetryableError, SECOND } from "../../author/context.ts";
import type { Runnable } from "../runtime.ts";

const job = (kind: string, more = {}) => ({ kind, args: { parse: (value: unknown) => value as object }, ...more });
const fail = () => Promise.reject(new NonRetryableError("no"));

interface Case {
  code: (ctx: JobContext<{ n?: number }>, args: { n?: number }) => Promise<unknown>;
  ended: string[];
  left?: string[];
  isCancelled?: boolean;
}

const startAll = (ctx: Context) =>
  Promise.all([
    ctx.start(job("child"), {}),
    ctx.start(job("left"), {}, { whenParentEnds: "leave" }),
    ctx.start(job("shared", { shared: true }), {}),
    ctx.start(job("released", { shared: true }), {}, { whenParentEnds: "cancel" }),
  ]);

const cases: Record<string, Case> = {
  "it fails": {
    code: (ctx) => startAll(ctx).then(() => ctx.step("pay", fail)),
    ended: ["child", "released"],
    left: ["left", "shared"],
  },
  "it fails while a start is under way": {
    code: (ctx) => Promise.all([ctx.start(job("child"), {}), ctx.step("pay", fail)]),
    ended: ["child"],
  },
  "it is cancelled": {
    code: (ctx) => startAll(ctx).then(() => ctx.sleep("a day", DAY)),
    ended: ["child", "released"],
    left: ["left", "shared"],
    isCancelled: true,
  },
  "its deadline comes": {
    code: (ctx) => startAll(ctx).then(([child]) => child.result()),
    ended: ["child", "released"],
    left: ["left", "shared"],
  },
  "it fails in a later run": {
    code: (ctx, { n = 1 }) =>
      n === 1 ? ctx.start(job("child"), {}).then(() => ctx.continueAs({ n: 2 })) : ctx.step("pay", fail),
    ended: ["child"],
  },
  "it completes": {
    code: (ctx) => startAll(ctx).then(() => "done"),
    ended: [],
    left: ["child", "left", "shared", "released"],
  },
  "a branch loses a race": {
    code: async (ctx) => {
      const waits = (kind: string) => async (c: Context) => (await c.start(job(kind), {})).result();
      const both = async (c: Context) => {
        await c.start(job("wanted"), {});
        await c.sleep("a while", MINUTE);
      };
      await ctx.race({ both, child: waits("child"), wanted: waits("wanted") });
      const late = await ctx.timeout(SECOND, waits("late")).catch((error) => error.name);
      return ctx.step("end", () => late);
    },
    ended: ["child", "late"],
    left: ["wanted"],
  },
  "an item is given up, before the next run": {
    code: async (ctx, { n = 1 }) => {
      if (n === 2) return ctx.sleep("a while", MINUTE);
      const items = ctx.all(["child", "bad"], async (c, kind) =>
        kind === "bad" ? c.sleep("a while", MINUTE).then(fail) : (await c.start(job(kind), {})).result(),
      );
      await items.catch(() => {});
      return ctx.continueAs({ n: 2 });
    },
    ended: ["child"],
  },
};

test.each(Object.entries(cases))(
  "when %s, the jobs that it started end as they were to, wherever its worker dies",
  async (_what, { code, ended, left = [], isCancelled }) => {
    const states = async (at: number, how: "before" | "after" = "after") => {
      const deaths = at === 0 ? [] : [{ at, how }];
      const cancel = isCancelled && { cancel: { after: 30 * MINUTE, noticeDelay: 0 } };
      const plan = { deaths, isWarm: at % 2 === 0, ...cancel };
      const end = await trial(() => code as unknown as Runnable, {}, { deadline: HOUR }, plan);
      for (const name of ended)
        expect([name, end.stateOf(name) ?? "rejected_canceled"]).toEqual([name, "rejected_canceled"]);
      for (const name of left) expect([name, end.stateOf(name)]).toEqual([name, "pending"]);
      return end.requests;
    };
    const requests = await states(0);
    for (let at = 1; at <= requests; at++) for (const how of ["before", "after"] as const) await states(at, how);
  },
);

test("a job ends its children before it undoes what it has done", async () => {
  const done: string[] = [];
  const code = async (ctx: Context) => {
    ctx.onUndo("refund", () => void done.push("refund"));
    await ctx.start(job("child"), {});
    await ctx.step("pay", fail);
  };
  const { records } = await trial(() => code as unknown as Runnable, {}, {}, { deaths: [], isWarm: true });
  expect(records.map(({ event }) => event.op)).toEqual([
    "start child",
    "start child",
    "pay",
    "undo/end child",
    "undo/refund",
  ]);
});
