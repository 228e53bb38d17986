import { expect, test } from "vitest";
import * as z from "zod";
import { defineJob, VERSION_TAG } from "../author/job.ts";
import { encodeValue } from "../resonate/codec.ts";
import { Names } from "./names.ts";
import { wordsOf } from "./own-jobs.ts";
import { entryOfJob } from "./record-entry.ts";

const counting = (group: string | undefined, version = 1) =>
  defineJob({
    kind: "count",
    args: z.object({}),
    result: z.object({ words: z.int().min(1) }),
    id: () => "one",
    version,
    ...(group !== undefined && { group }),
  });

/** The state and the value, or error message, of a job whose promise is resolved with `words`. */
function outcome(job: ReturnType<typeof counting>, words: unknown, tags: Record<string, string> = {}) {
  const record = { id: "count_one", state: "resolved" as const, createdAt: 0, timeoutAt: 1, tags };
  const param = encodeValue({ func: "count", args: [{}], version: 1 });
  const promise = new Names([job], "", "").decode({ ...record, param, value: encodeValue({ words }) });
  return [promise?.state, promise?.value instanceof Error ? promise.value.message : promise?.value];
}

test("a result from another group's worker is checked against the definition", () => {
  expect(outcome(counting("python"), 2)).toEqual(["resolved", { words: 2 }]);
  const [state, reason] = outcome(counting("python"), 0);
  expect(state).toBe("rejected");
  expect(reason).toMatch(/does not fit the tool's output at words/);
});

test("a complete result stays complete when a later version of the definition has another output", () => {
  const tags = { [VERSION_TAG]: "1" };
  expect(outcome(counting("python", 2), 0, tags)).toEqual(["resolved", { words: 0 }]);
});

test("a result from this project's own workers, which check it themselves, is not checked again", () => {
  expect(outcome(counting(undefined), 0)).toEqual(["resolved", { words: 0 }]);
});

test("a job whose arguments cannot be decoded is found nevertheless, so that it can be cancelled and removed", () => {
  const record = { id: "count_one", state: "pending" as const, createdAt: 0, timeoutAt: 1, tags: {}, value: {} };
  const promise = new Names([counting(undefined)], "", "").decode({ ...record, param: { data: btoa("{") } });
  expect(promise).toMatchObject({ name: "count_one", state: "pending", args: undefined });
});

test("the author's functions of a definition are not called with arguments that cannot be decoded", () => {
  const job = defineJob<{ at: number }>({
    kind: "bell",
    args: z.object({ at: z.number() }),
    id: ({ at }) => at,
    expectedAt: ({ at }) => at,
    restarts: (_error, { at }) => at > 1,
  });
  expect([job.expectedAt?.({ at: 1 }), job.restarts(undefined, { at: 1 })]).toEqual([1, false]);
  expect([job.expectedAt?.(undefined), job.restarts(undefined, undefined)]).toEqual([undefined, true]);
});

test("a job has one name, in whichever form its characters come", async () => {
  const named = defineJob({ kind: "note", args: z.object({ of: z.string() }), id: ({ of }) => of });
  const names = new Names([named], "", "");
  const [composed, decomposed] = ["Zürich: é", "Zu\u0308rich: e\u0301"];
  expect(await named.name({ of: decomposed })).toBe(await named.name({ of: composed }));
  const name = await named.name({ of: composed });
  expect(names.idOf(name.normalize("NFD"))).toBe(names.idOf(name));
  expect(names.find(names.id(named, name.normalize("NFD")))).toEqual({ name, job: named });
  expect(wordsOf("Zu\u0308rich")).toEqual(wordsOf("Zürich"));
});

test("a job has its data once in memory, and knows its size", () => {
  const record = { id: "count_one", state: "resolved" as const, createdAt: 0, timeoutAt: 1, tags: {} };
  const param = encodeValue({ func: "count", args: [{}], version: 1 });
  const value = encodeValue({ words: 2 });
  const promise = new Names([counting(undefined)], "", "").decode({ ...record, param, value });
  expect(JSON.stringify(promise)).not.toContain(value.data);
  expect(promise && entryOfJob(promise, "").bytes).toBeGreaterThan(`${param.data}${value.data}`.length / 2);
});
