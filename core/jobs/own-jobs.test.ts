import { expect, test } from "vitest";
import * as z from "zod";
import { defineJob } from "../author/job.ts";
import { encodeValue } from "../resonate/codec.ts";
import { Names } from "./names.ts";
import { searchOwn } from "./own-jobs.ts";

test("a listed job of another group's worker is complete if its result fits the definition, and failed if not", async () => {
  const job = defineJob({
    kind: "count",
    args: z.object({ n: z.int() }),
    result: z.object({ words: z.int().min(1) }),
    id: ({ n }) => n,
    group: "python",
  });
  const promises = [0, 1].map((words) => ({
    id: `count_${words}`,
    state: "resolved",
    tags: {},
    createdAt: words,
    settledAt: 5,
    timeoutAt: 9,
    param: encodeValue({ func: "count", args: [{ n: words }], version: 1 }),
    value: encodeValue({ words }),
  }));
  const client = { search: async () => ({ promises }) } as never;
  const listed: unknown[] = [];
  for await (const { job: own } of searchOwn(client, new Names([job], "", ""), {}))
    listed.push([own?.name, own?.promise?.state]);
  expect(listed).toEqual([
    ["count_1", "resolved"],
    ["count_0", "rejected"],
  ]);
});
