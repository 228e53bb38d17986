/** A job goes on with the code of the version that it began with, whose schemas are gone. */
import { expect, test } from "vitest";
import * as z from "zod";
import { replay } from "../../testing/replay.ts";
import { SimulatedJob } from "../../testing/simulation/simulated-job.ts";
import { defineDurableTool } from "../tools/job-tool.ts";
import { type Context, DAY } from "./context.ts";
import { implement } from "./implement.ts";
import { defineJob } from "./job.ts";

interface Args {
  to: string;
  at: Date;
  note?: string | undefined;
}

const reminding = async (ctx: Context, { to, at, note = "" }: Args) => {
  await ctx.step("send", () => to);
  await ctx.sleep("a month", 30 * DAY);
  return { sent: await ctx.step("remind", () => `${to} ${note}`.trim()), year: new Date(at).getUTCFullYear() };
};

const versionOne = defineJob({
  kind: "reminder",
  args: z.object({ to: z.string(), at: z.coerce.date(), note: z.string().optional() }),
  result: z.object({ sent: z.string(), year: z.number() }),
  id: ({ to }) => to,
});

/** Starts a job of version 1, and lets it end after version 2 with these schemas was deployed. */
async function endAfter(args: z.ZodType<never>, stored: object, result: z.ZodType<unknown> = z.unknown()) {
  const first = implement(versionOne, reminding).versionOf(1);
  const job = new SimulatedJob(first as never, { args: stored });
  expect(await job.next()).toEqual({ kind: "asleep" });
  const two = defineJob<never>({ kind: "reminder", args, result: result as never, id: () => "x", version: 2 });
  const code = implement(two, async () => ({}) as never, { earlier: { 1: reminding as never } }).versionOf(1);
  job.code = code as never;
  return job.toEnd();
}

const STORED = { to: "ada", at: "2026-01-01T00:00:00.000Z" };
const complete = (sent = "ada") => ({ kind: "complete", value: { sent, year: 2026 } });
const withArgs = (shape: object) =>
  z.object({ to: z.string(), at: z.coerce.date(), ...shape }) as unknown as z.ZodType<never>;

test("a job of an earlier version ends with a result that the newest output no longer fits", async () => {
  const output = z.object({ sent: z.string(), year: z.number(), receipt: z.string() });
  expect(await endAfter(withArgs({}), STORED, output)).toEqual(complete());
});

test.each<[string, object, object, string]>([
  ["have a new required field", { urgent: z.boolean() }, STORED, "ada"],
  ["lack a field that it was started with", {}, { ...STORED, note: "soon" }, "ada soon"],
  ["change a field", { to: z.string().transform((to) => `${to}!`) }, STORED, "ada"],
  ["have a new field with a default", { urgent: z.boolean().default(false) }, STORED, "ada"],
])(
  "a job of an earlier version goes on with its own arguments if the newest ones %s",
  async (_, shape, stored, sent) => {
    expect(await endAfter(withArgs(shape), stored)).toEqual(complete(sent));
  },
);

test("an earlier version gets its arguments as its schema made them, where the newest schema leaves them as they are", async () => {
  const two = defineJob({
    kind: "reminder",
    id: () => "x",
    version: 2,
    args: withArgs({ urgent: z.boolean().default(false) }),
  });
  const code = async (_ctx: Context, { at }: Args) => at.getTime();
  const run = implement(two, async () => 0, { earlier: { 1: code as never } }).versionOf(1);
  const end = await new SimulatedJob(run as never, { args: STORED }).toEnd();
  expect(end).toEqual({ kind: "complete", value: Date.parse(STORED.at) });
});

test("a result of an earlier version must be one that JSON can hold", async () => {
  const two = defineJob({ kind: "reminder", args: withArgs({}), id: () => "x", version: 2 });
  const run = implement(two, async () => 0, { earlier: { 1: async () => new Map() } }).versionOf(1);
  const end = await new SimulatedJob(run as never, { args: STORED }).toEnd();
  expect(end).toMatchObject({ kind: "failed", error: { message: expect.stringContaining("returned a Map") } });
});

const Watch = {
  name: "watch",
  title: "Watch",
  description: "Watches a site.",
  input: z.object({ url: z.string(), depth: z.number().default(1) }),
  output: z.object({ url: z.string(), ok: z.boolean() }),
};
const watch = defineDurableTool({ ...Watch, id: ({ url }) => url });

test("a function whose result lacks what its output promises does not compile", () => {
  // @ts-expect-error `ok` is missing.
  implement(watch, async (_ctx, { url }) => ({ url }));
  // @ts-expect-error All is missing.
  implement(watch, async () => ({}));
  // @ts-expect-error The output is an object.
  implement(watch, async () => null);
  // @ts-expect-error The result is a definition's.
  implement(versionOne, async () => ({ sent: 1, year: 2026 }));
  implement(watch, async (_ctx, { url, depth }) => ({ url: url + depth.toFixed(), ok: true }), {
    earlier: { 1: async (_ctx, { address }: { address: string }) => address },
  });
});

test("a definition without an id, or with an option that does not exist, does not compile", () => {
  // @ts-expect-error `id` is missing.
  defineDurableTool({ ...Watch });
  // @ts-expect-error Did you mean to write 'deadline'?
  defineDurableTool({ ...Watch, id: ({ url }: { url: string }) => url, deadlines: DAY });
});

test("replay takes the arguments that a caller passes, typed, and returns the typed result", async () => {
  const run = implement(watch, async (_ctx, { url, depth }) => ({ url: `${url}/${depth}`, ok: true }));
  const { result } = await replay(run, { url: "x" });
  expect(result.url satisfies string).toBe("x/1");
  // @ts-expect-error The URL is a text.
  await expect(replay(run, { url: 1 })).rejects.toThrow("url");
  // @ts-expect-error The URL is missing.
  await expect(replay(run, {})).rejects.toThrow("url");
});
