import { expect, test, vi } from "vitest";
import { Journal } from "../../core/engine/journal.ts";
import { encodeValue, ORDER_TAG } from "../../core/resonate/codec.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { orderId } from "../../core/resonate/ids.ts";
import { jobRun } from "../../test/support/job-run.ts";
import { awaitTurn } from "./task.ts";

const POSITION = `${orderId("", "tea", "ada")}1`;
const STORED = { state: "resolved" as const, param: {}, value: {}, tags: {}, timeoutAt: 9e12, createdAt: 0 };

/** A job at the first position, which was created so many milliseconds after it. */
function scene(delayMs: number) {
  const get = vi.fn(async (id: string): Promise<PromiseRecord | undefined> =>
    id === POSITION ? { ...STORED, id, param: encodeValue({ job: "tea_1", by: "b" }) } : undefined,
  );
  const create = vi.fn(async (id: string) => ({ ...STORED, id }));
  const job = { concurrency: { key: () => "ada", limit: 1 } };
  const promise = { tags: { [ORDER_TAG]: POSITION }, createdAt: delayMs };
  return { ...jobRun({ job, promise, lease: { get, create } }), get };
}

test("a job begins when it is its turn", async () => {
  const { run } = scene(1);
  expect(await awaitTurn.run?.(run, async () => "complete")).toBe("complete");
});

test("a job that was created too long after its position fails with a reason", async () => {
  const { run, ends } = scene(40_000);
  expect(await awaitTurn.run?.(run, async () => "complete")).toBe("failed");
  expect(ends).toMatchObject([{ error: { message: expect.stringContaining("start it again") } }]);
});

test("a job that has a record has begun, and is not asked for its turn again", async () => {
  const { run, get } = scene(1);
  const journal = new Journal();
  journal.add({ ...STORED, id: "tea_1:e1", param: encodeValue({ kind: "step", op: "brew" }) }, 1);
  run.memory.journal = journal;
  await awaitTurn.run?.(run, async () => "complete");
  expect(get).not.toHaveBeenCalled();
});
