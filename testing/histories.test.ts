import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { type Implementation, implement } from "../core/author/implement.ts";
import { type Context, HOUR } from "../core/definitions/context.ts";
import { event } from "../core/definitions/event.ts";
import { defineJob } from "../core/definitions/job.ts";
import type { History } from "../core/engine/history.ts";
import { replayHistories } from "./histories.ts";
import { JOB, recordsIn, SEED, SimulatedJob } from "./simulation/simulated-job.ts";

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
  const saved = await historyOf(new SimulatedJob(code("as it was")), "racing");
  const racing = defineJob({ kind: "racing", args: z.object({}), id: () => "", deadline: HOUR });
  expect(await replayed(saved, implement(racing, code("as it was")))).toBe(1);
  await expect(replayed(saved, implement(racing, code("changed")))).rejects.toThrow('returns "changed"');
});

test("the history of a job that sent an event fits its definition", async () => {
  const events = [event({ name: "price.fell", payload: z.object({}) })];
  const telling = defineJob({ kind: "telling", args: z.object({}), id: () => "", deadline: HOUR, events });
  const code = async (ctx: Context) => {
    await ctx.event("price.fell", {});
    return "as it was";
  };
  const saved = await historyOf(new SimulatedJob(code, { events }), "telling");
  expect(await replayed(saved, implement(telling, code))).toBe(1);
});

/** The history of a job that returns `as it was`. */
async function historyOf(simulated: SimulatedJob, kind: string): Promise<History> {
  expect(await simulated.toEnd()).toEqual({ kind: "complete", value: "as it was" });
  const root = simulated.sim.get(JOB);
  return {
    ...{ id: JOB, jobName: JOB, kind, version: 1, seed: SEED, args: {} },
    ...{ startedAt: root?.createdAt ?? 0, deadline: root?.timeoutAt ?? 0, end: { value: "as it was" }, awaited: {} },
    records: recordsIn(simulated.sim).flatMap(({ id }) => simulated.sim.get(id) ?? []),
  };
}

async function replayed(history: History, run: Implementation): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "histories-"));
  try {
    await writeFile(join(folder, "history.json"), JSON.stringify(history));
    return await replayHistories(folder, [run]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
