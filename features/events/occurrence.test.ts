import { expect, test } from "vitest";
import * as z from "zod";
import { EVENT, LEFT_OUT } from "../../core/author/event.ts";
import { defineJob } from "../../core/author/job.ts";
import { JOB_ENDED, JOB_OUTPUT } from "../../core/jobs/job-events.ts";
import { encodeValue } from "../../core/resonate/codec.ts";
import { occurrenceOf, outputEvent } from "./occurrence.ts";

const foreign = defineJob({
  kind: "count",
  args: z.object({}),
  result: z.object({ words: z.int().min(1) }),
  id: () => "a",
  group: "python",
});
const SOURCES = {
  feeds: {} as never,
  namespace: "",
  key: "",
  jobs: [foreign],
  labels: [],
  pageOf: async () => undefined,
  isLast: true,
};

test.each([
  ["a partial result of null has it", { param: encodeValue(null) }, { offset: 0, output: null }],
  ["a partial result of a job that was removed has none", undefined, { offset: 0 }],
])("%s", async (_what, record, data) => {
  const event = {
    id: "e",
    name: JOB_OUTPUT,
    at: 0,
    job: "count_a",
    kind: "count",
    data: JSON.stringify({ output: 1 }),
  };
  const client = { call: async () => record } as never;
  expect((await occurrenceOf(event, { ...SOURCES, client })).data).toEqual({
    job_name: "count_a",
    kind: "count",
    ...data,
  });
});

test("an output that the job had no room for makes no event", () => {
  const job = { id: "count_a", name: "count_a", kind: "count" };
  const namesOf = (value: unknown) => outputEvent(job, 1, { param: encodeValue(value), createdAt: 0 } as never)?.name;
  expect([7, { [EVENT]: "price" }, LEFT_OUT].map(namesOf)).toEqual([JOB_OUTPUT, "price", undefined]);
});

test.each<[string, "resolved" | "rejected", unknown, object]>([
  ["fits the definition: complete", "resolved", { words: 2 }, { status: "complete", result: { words: 2 } }],
  [
    "does not fit the definition: failed",
    "resolved",
    { words: 0 },
    { status: "failed", error: expect.stringContaining("does not fit the tool's output at words") },
  ],
  [
    "is the error of its deadline: timed out",
    "rejected",
    Object.assign(new Error("late"), { name: "DeadlineExceeded" }),
    { status: "timed_out" },
  ],
])("the end of a job tells the same status as the tools if its outcome %s", async (_what, state, value, expected) => {
  const record = {
    id: "count_a",
    state,
    param: encodeValue({ func: "count", args: [{}], version: 1 }),
    tags: {},
    value: encodeValue(value),
    createdAt: 0,
    settledAt: 1,
    timeoutAt: 2,
  };
  const data = JSON.stringify({ state, startedAt: 0, settledAt: 1 });
  const event = { id: "e", name: JOB_ENDED, at: 1, job: "count_a", kind: "count", data };
  const client = { call: async () => record } as never;
  expect((await occurrenceOf(event, { ...SOURCES, client })).data).toMatchObject(expected);
});
