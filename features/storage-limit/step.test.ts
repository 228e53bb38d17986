/** What a job may store. */
import { expect, test } from "vitest";
import { type Context, HOUR, type JobContext } from "../../core/author/context.ts";
import { LEFT_OUT } from "../../core/author/event.ts";
import { decodeValue } from "../../core/resonate/codec.ts";
import { outputId } from "../../core/resonate/ids.ts";
import { MAX_JOB_BYTES } from "../../core/resonate/size.ts";
import { JOB_NAME, SimulatedJob } from "../../testing/simulation/simulated-job.ts";

const kept = "x".repeat(49_000);

test.each<[string, (ctx: JobContext<object>, n: number) => Promise<unknown>]>([
  ["steps", (ctx, n) => ctx.step(`keep ${n}`, () => "x".repeat(999_000))],
  ["partial results", (ctx) => ctx.emit(kept)],
])("%s beyond what a job may store fail, and the function cleans up", async (_what, keep) => {
  const job = new SimulatedJob(async (ctx: JobContext<object>) => {
    try {
      for (let n = 0; ; n++) await keep(ctx, n);
    } finally {
      await ctx.step("give back", () => "given back");
    }
  });
  const end = await job.toEnd();
  expect(end.kind === "failed" && String(end.error)).toMatch(/has stored 67108864 bytes, as many as one may/);
  const stored = job.sim.promises().reduce((sum, id) => sum + (job.sim.get(id)?.param.data?.length ?? 0) * 0.75, 0);
  expect(stored).toBeGreaterThan(60_000_000);
  expect(stored).toBeLessThan(68_000_000);
});

test.each<[string, (ctx: JobContext<object>) => Promise<unknown>]>([
  [
    "a question",
    async (ctx) => {
      for (let n = 0; n < 67; n++) await ctx.step(`keep ${n}`, () => "x".repeat(999_000));
      await ctx.step("keep a little", () => "x".repeat(160_000));
      const requestedSchema = { type: "object" as const, properties: {} };
      await ctx.ask("long", { message: "x".repeat(19_000), requestedSchema });
    },
  ],
  [
    "one of the values that steps return at once",
    (ctx) =>
      ctx.all(
        Array.from({ length: 80 }, (_, n) => n),
        (on) => on.step("keep", () => "x".repeat(999_000)),
      ),
  ],
])("%s beyond what a job may store is refused, and the function cleans up", async (_what, exceed) => {
  const ended: string[] = [];
  const job = new SimulatedJob(async (ctx: JobContext<object>) => {
    try {
      await exceed(ctx);
    } catch (error) {
      await ctx.step("give back", () => void ended.push("given back"));
      throw error;
    }
  });
  const end = await job.toEnd();
  expect(end.kind === "failed" && String(end.error)).toMatch(/has stored 67108864 bytes, as many as one may/);
  expect(ended).toEqual(["given back"]);
});

test("all runs of a job together have one limit", async () => {
  const job = new SimulatedJob(
    async (ctx: JobContext<{ n: number; text: string }>, { n, text }: { n: number; text: string }): Promise<unknown> =>
      ctx.continueAs({ n: n + 1, text }),
    { args: { n: 1, text: "x".repeat(900_000) } },
  );
  const end = await job.toEnd();
  expect(end.kind === "failed" && String(end.error)).toMatch(/has stored 67108864 bytes/);
});

test("an output that the job has no room for leaves a placeholder, which readers pass", async () => {
  const simulated = new SimulatedJob(async (ctx: Context) => {
    await ctx.emit("x".repeat(49_000)).catch(() => ctx.emit("a little"));
    await ctx.sleep("a while", HOUR);
  });
  simulated.journal.storedBytes = MAX_JOB_BYTES - 40_000;
  await simulated.execute();
  const outputs = [1, 2, 3].map((n) => {
    const promise = simulated.sim.get(outputId(JOB_NAME, n));
    return promise && decodeValue(promise.param);
  });
  expect(outputs).toEqual([LEFT_OUT, "a little", undefined]);
});
