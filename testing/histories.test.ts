import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { type Context, HOUR } from "../core/author/context.ts";
import { event } from "../core/author/event.ts";
import { type Implementation, implement } from "../core/author/implement.ts";
import { defineJob } from "../core/author/job.ts";
import type { History } from "../core/engine/history.ts";
import { replayHistories } from "./histories.ts";
import { JOB_NAME, recordsIn, SEED, SimulatedJob } from "./simulation/simulated-job.ts";

test("the history of a job that gave up an output is compared to its end", async () => {
  const code = (result: string) => async (ctx: Context) => {
    await ctx.race({
      a: async (c) => {
        await c.step("x", () => 1);
        await c.emit("given up");
      },
      b: (c) => c.step("y", () => 1),
    });
    return result;
  };
  const history = await historyOf(new SimulatedJob(code("as it was")), "racing");
  const racing = defineJob({ kind: "racing", args: z.object({}), id: () => "", deadline: HOUR });
  expect(await replay(history, implement(racing, code("as it was")))).toBe(1);
  await expect(replay(history, implement(racing, code("changed")))).rejects.toThrow('returns "changed"');
});

test("the history of a job that sent an event fits its definition", async () => {
  const events = [event({ name: "price.fell", payload: z.object({}) })];
  const sending = defineJob({ kind: "sending", args: z.object({}), id: () => "", deadline: HOUR, events });
  const code = async (ctx: Context) => {
    await ctx.event("price.fell", {});
    return "as it was";
  };
  const history = await historyOf(new SimulatedJob(code, { events }), "sending");
  expect(await replay(history, implement(sending, code))).toBe(1);
});

describe("a failure of the present code over the history", () => {
  const buying = defineJob({ kind: "buying", args: z.object({}), id: () => "", deadline: HOUR });
  const implementBuying = (then: (count: number) => unknown) =>
    implement(buying, async (ctx: Context) => then(await ctx.step("count", () => 1)));
  const soldOut = () => {
    throw new Error("sold out");
  };
  const faulty = (count: number) => (count as unknown as string).trim();
  const historyWith = (then: (count: number) => unknown) =>
    historyOf(new SimulatedJob(implementBuying(then).versionOf(1) as never), "buying", { kind: "failed" });

  test("of a running job is reported", async () => {
    const { end: _, ...running } = { ...(await historyWith(soldOut)), state: "pending" as const };
    expect(
      await replay(
        running,
        implementBuying(() => "done"),
      ),
    ).toBe(1);
    await expect(replay(running, implementBuying(faulty))).rejects.toThrow(/it fails: .*trim.*, and the job had not$/);
  });

  test("of a running job that has begun a sleep and does not await it is reported", async () => {
    const sleeping = (then: (count: number) => unknown) => async (ctx: Context) => {
      const count = await ctx.step("count", () => 1);
      const pause = ctx.sleep("pause", 1_000);
      await ctx.step("count again", () => 2);
      const end = then(count);
      await pause;
      return end;
    };
    const simulated = new SimulatedJob(sleeping(() => "as it was"));
    const { end: _, ...running } = { ...(await historyOf(simulated, "buying")), state: "pending" as const };
    expect(await replay(running, implement(buying, sleeping(String)))).toBe(1);
    await expect(replay(running, implement(buying, sleeping(faulty)))).rejects.toThrow(/trim.*, and the job had not$/);
  });

  test("of a running job is accepted if its deadline has come since", async () => {
    const { end: _, ...running } = { ...(await historyWith(soldOut)), state: "pending" as const };
    const late = implement(buying, async (ctx: Context) => {
      await ctx.step("count", () => 1);
      await ctx.sleep("long", 365 * 24 * HOUR);
    });
    expect(await replay(running, late)).toBe(1);
  });

  test("of a failed job is reported if it differs, as is a success", async () => {
    const failed = {
      ...(await historyWith(soldOut)),
      state: "rejected" as const,
      end: { error: { message: "sold out" } },
    };
    expect(await replay(failed, implementBuying(soldOut))).toBe(1);
    await expect(
      replay(
        failed,
        implementBuying(() => 1),
      ),
    ).rejects.toThrow("it returns 1, and failed: sold out");
    await expect(replay(failed, implementBuying(faulty))).rejects.toThrow(/it fails: .*trim.*, and failed: sold out$/);
    // Redacted fields may be a part of the message, which is then not saved.
    expect(await replay({ ...failed, end: { error: {} } }, implementBuying(faulty))).toBe(1);
  });

  test("of a failed job is accepted if only its line differs", async () => {
    const message = "count.trim is not a function (at shop/buying.run.ts:7)";
    const failed = { ...(await historyWith(faulty)), state: "rejected" as const, end: { error: { message } } };
    expect(await replay(failed, implementBuying(faulty))).toBe(1);
  });

  test("of a cancelled job may fail, and of one that runs is reported", async () => {
    const { end: _, ...unended } = await historyWith(soldOut);
    expect(await replay({ ...unended, state: "rejected_canceled" }, implementBuying(soldOut))).toBe(1);
    const fails = replay({ ...unended, state: "pending" }, implementBuying(soldOut));
    await expect(fails).rejects.toThrow("it fails: sold out, and the job had not");
  });
});

/** The history of a job that returns `as it was`. */
async function historyOf(
  simulated: SimulatedJob,
  kind: string,
  end: object = { kind: "complete", value: "as it was" },
): Promise<History> {
  expect(await simulated.toEnd()).toMatchObject(end);
  const root = simulated.sim.get(JOB_NAME);
  return {
    id: JOB_NAME,
    jobName: JOB_NAME,
    kind,
    version: 1,
    seed: SEED,
    args: {},
    state: "resolved",
    startedAt: root?.createdAt ?? 0,
    deadline: root?.timeoutAt ?? 0,
    end: { value: "as it was" },
    awaitedPromises: {},
    records: recordsIn(simulated.sim).flatMap(({ id }) => simulated.sim.get(id) ?? []),
  };
}

async function replay(history: History, run: Implementation): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "histories-"));
  try {
    await writeFile(join(folder, "history.json"), JSON.stringify(history));
    return await replayHistories(folder, [run]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
