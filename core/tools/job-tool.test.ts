import { expect, test } from "vitest";
import * as z from "zod";
import { defineJob, type Job } from "../author/job.ts";
import type { DurablePromise } from "../jobs/durable-promise.ts";
import { defineDurableTool } from "./job-tool.ts";
import { presentJob } from "./present.ts";

const input = z.object({ day: z.string() });

const reportOf = (kind: string, maxAnswer?: number) => {
  const job = defineJob({ kind, args: input, id: ({ day }) => day });
  const tool = defineDurableTool({
    job,
    name: kind,
    title: "Report",
    description: "Writes the report of a day.",
    input,
    ...(maxAnswer !== undefined && { maxAnswer }),
  });
  return { job: job as Job, tool };
};

/** A job of this kind that has ended with a text of `length` characters. */
const ended = (job: Job, length: number) =>
  ({
    job,
    name: `${job.kind}_x`,
    state: "resolved",
    value: "x".repeat(length),
    createdAt: 1,
    settledAt: 2,
  }) as DurablePromise;

test("a tool with a maxAnswer announces it to hosts, and its answers may be that large", () => {
  const { job, tool } = reportOf("long_report", 250_000);
  expect(tool.listing).toMatchObject({ _meta: { "anthropic/maxResultSizeChars": 250_000 } });
  const answer = presentJob(ended(job, 100_000));
  expect(answer.structuredContent).toMatchObject({ status: "complete", result: "x".repeat(100_000) });
  expect(JSON.stringify(answer).length).toBeLessThanOrEqual(250_000);
  // A result beyond maxAnswer still becomes a summary.
  expect(presentJob(ended(job, 300_000)).structuredContent).toMatchObject({ summary: { characters: 300_002 } });
});

test("a tool without a maxAnswer announces none, and has the default limit", () => {
  const { job, tool } = reportOf("report");
  expect(tool.listing).not.toHaveProperty("_meta");
  const answer = presentJob(ended(job, 100_000));
  expect(answer.structuredContent).toMatchObject({ status: "complete", summary: { characters: 100_002 } });
  expect(JSON.stringify(answer).length).toBeLessThanOrEqual(50_000);
});

test("a maxAnswer without room for a summary is refused", () => {
  expect(() => reportOf("short_report", 1_000)).toThrow("its maxAnswer must be 5000 characters or more, not 1000");
});

test.each<[what: string, input: unknown, words: string]>([
  ["no schema", undefined, "its input schema must be that of an object: z.object({ … }) of zod 4"],
  [
    "a plain object of fields",
    { text: z.string() },
    "its input schema must be that of an object: z.object({ … }) of zod 4",
  ],
  [
    "another library's schema",
    { parse: () => ({}), _def: {} },
    "its input schema must be that of an object: z.object({ … }) of zod 4",
  ],
  [
    "a union",
    z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]),
    "its input schema must be that of an object",
  ],
  ["a date", z.object({ at: z.date() }), "its input cannot be expressed in JSON Schema: Date cannot be represented"],
])("an input that is %s is refused with a message that says why", (_what, input, words) => {
  const tool = { name: "note", title: "Note", description: "Notes.", input: input as never, id: () => "x" };
  expect(() => defineDurableTool(tool)).toThrow(`note: ${words}`);
});
