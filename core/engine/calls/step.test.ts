/** Steps whose recorded value is checked by a schema. */
import { expect, test } from "vitest";
import * as z from "zod";
import { replay } from "../../../testing/replay.ts";
import { SimulatedJob } from "../../../testing/simulation/simulated-job.ts";
import { type Context, HOUR } from "../../author/context.ts";

const dated = z.object({ due: z.coerce.date() });
const ordered = async (ctx: Context) => {
  const order = await ctx.step("order", () => ({ due: "2026-11-30T07:00:00Z" }), { schema: dated });
  await ctx.sleep("a while", HOUR);
  const due: Date = order.due;
  return [due instanceof Date, due.getUTCDay()];
};

test("a function gets what the schema of a step makes of its value, live and in each replay", async () => {
  expect((await replay(ordered, {})).result).toEqual([true, 1]);
});

test("a value that was recorded by code of another shape blocks the job and says what to do, and code that accepts it goes on", async () => {
  const job = new SimulatedJob(async (ctx: Context) => {
    await ctx.step("order", () => "book");
    await ctx.sleep("a while", HOUR);
  });
  await job.next();
  const schema = z.object({ title: z.string() });
  const other = async (ctx: Context, accepts: z.ZodType<{ title: string }> = schema) => {
    const { title } = await ctx.step("order", () => ({ title: "book" }), { schema: accepts });
    await ctx.sleep("a while", HOUR);
    return title;
  };
  job.code = ((ctx: Context) => other(ctx)) as never;
  job.forget();
  expect(await job.next()).toEqual({
    kind: "blocked",
    reason: expect.stringMatching(
      /^step "order" was recorded with a value that does not fit its schema: .*expected object.* raise the version/,
    ),
  });
  const both = z
    .string()
    .transform((title) => ({ title }))
    .or(schema);
  job.code = ((ctx: Context) => other(ctx, both)) as never;
  expect(await job.toEnd()).toEqual({ kind: "complete", value: "book" });
});

test.each([
  ["does not fit", dated, /^step "order" returned a value that does not fit its schema: due: /],
  [
    "is checked asynchronously",
    z.any().refine(async () => true),
    /^step "order" returned a value that its schema checks asynchronously/,
  ],
])("a value that %s fails the step at its first attempt", async (_what, schema, message) => {
  let attempts = 0;
  const count = () => {
    attempts += 1;
    return { due: "soon" };
  };
  const job = new SimulatedJob(async (ctx: Context) => ctx.step("order", count, { schema: schema as z.ZodType }));
  expect(await job.toEnd()).toMatchObject({ kind: "failed", error: { message: expect.stringMatching(message) } });
  expect(attempts).toBe(1);
});
