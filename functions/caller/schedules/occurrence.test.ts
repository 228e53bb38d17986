import { expect, test } from "vitest";
import { EVENT, LEFT_OUT } from "../../../core/definitions/event.ts";
import { encodeValue } from "../../../core/store/codec.ts";
import { JOB_OUTPUT, occurrenceOf, toldEvent } from "./occurrence.ts";

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

test("an output that the job had no room for makes no event", () => {
  const job = { id: "count_a", name: "count_a", kind: "count" };
  const namesOf = (value: unknown) => toldEvent(job, 1, { param: encodeValue(value), createdAt: 0 } as never)?.name;
  expect([7, { [EVENT]: "price" }, LEFT_OUT].map(namesOf)).toEqual([JOB_OUTPUT, "price", undefined]);
});
