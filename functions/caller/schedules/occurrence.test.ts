import { expect, test } from "vitest";
import { encodeValue } from "../../../core/store/codec.ts";
import { JOB_OUTPUT, occurrenceOf } from "./occurrence.ts";

test.each([
  ["a partial result of null has it", { param: encodeValue(null) }, { offset: 0, output: null }],
  ["a partial result of a job that was removed has none", undefined, { offset: 0 }],
])("%s", async (_what, record, data) => {
  const event = { id: "e", name: JOB_OUTPUT, at: 0, job: "count_a", kind: "count", data: JSON.stringify({ told: 1 }) };
  const client = { call: async () => record } as never;
  const none = { feeds: {} as never, namespace: "", key: "", labels: [], pageOf: async () => undefined };
  const telling = { ...none, client, isLast: true };
  expect((await occurrenceOf(event, telling)).data).toEqual({ job_name: "count_a", kind: "count", ...data });
});
