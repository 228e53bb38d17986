import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { implement } from "../core/author/implement.ts";
import { type Context, HOUR } from "../core/definitions/context.ts";
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
  const simulated = new SimulatedJob(code("as it was"));
  expect(await simulated.toEnd()).toEqual({ kind: "complete", value: "as it was" });
  const root = simulated.sim.get(JOB);
  const history: History = {
    ...{ id: JOB, jobName: JOB, kind: "racing", version: 1, seed: SEED, args: {} },
    ...{ startedAt: root?.createdAt ?? 0, deadline: root?.timeoutAt ?? 0, end: { value: "as it was" }, awaited: {} },
    records: recordsIn(simulated.sim).flatMap(({ id }) => simulated.sim.get(id) ?? []),
  };
  const folder = await mkdtemp(join(tmpdir(), "histories-"));
  try {
    await writeFile(join(folder, "racing.json"), JSON.stringify(history));
    const racing = defineJob({ kind: "racing", args: z.object({}), id: () => "", deadline: HOUR });
    expect(await replayHistories(folder, [implement(racing, code("as it was"))])).toBe(1);
    await expect(replayHistories(folder, [implement(racing, code("changed"))])).rejects.toThrow('returns "changed"');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
