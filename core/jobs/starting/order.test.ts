import { expect, test } from "vitest";
import type { Lease } from "../../engine/runtime.ts";
import { encodeValue, ORDER } from "../../store/codec.ts";
import type { PromiseRecord } from "../../store/connection/protocol.ts";
import { begunId, cleanUpId, orderId } from "../../store/ids.ts";
import { turnOf } from "./order.ts";

const chain = orderId("", "visit", "ada");
type Known = Pick<PromiseRecord, "id"> & Partial<PromiseRecord>;

/** The turn of the job `c` after `a` and `b`, of which `a` has begun, and the ids that were read. */
async function turnAfter(a: PromiseRecord["state"], b: PromiseRecord["state"], also: Known[] = [], limit = 1) {
  const jobs = { a, b, c: "pending" as const };
  const known = new Map<string, PromiseRecord>();
  const add = ({ id, ...promise }: Known) =>
    known.set(id, { id, state: "resolved", param: {}, value: {}, tags: {}, timeoutAt: 9e12, createdAt: 1, ...promise });
  for (const [i, [id, state]] of Object.entries(jobs).entries()) {
    add({ id: chain + (i + 1), param: encodeValue({ job: id, by: id }) });
    add({ id, state, tags: { [ORDER]: chain + (i + 1) } });
  }
  for (const each of [{ id: begunId("a"), param: encodeValue({ beside: [] }) }, ...also]) add(each);
  const read: string[] = [];
  const lease = {
    get: async (id: string) => {
      read.push(id);
      return known.get(id);
    },
    create: async (id: string) => ({ id }),
  };
  const turn = await turnOf(known.get("c") as PromiseRecord, limit, lease as unknown as Lease, 60_000);
  return { turn, read };
}

test("a job waits for the clean-up of a cancelled job that had begun, until the clean-up has ended or timed out", async () => {
  const after = (state: PromiseRecord["state"]) =>
    turnAfter("rejected_canceled", "resolved", [{ id: cleanUpId("a"), state }]);
  expect((await after("pending")).turn).toEqual([cleanUpId("a")]);
  expect((await after("resolved")).turn).toBe("now");
  expect((await after("rejected_timedout")).turn).toBe("now");
  expect((await turnAfter("rejected_canceled", "resolved")).turn).toBe("now");
});

test("a job that another one began beside is waited for until its clean-up has ended", async () => {
  const also = [
    { id: begunId("b"), param: encodeValue({ beside: ["a"] }) },
    { id: cleanUpId("a"), state: "pending" as const },
  ];
  expect((await turnAfter("rejected_canceled", "pending", also, 2)).turn).toEqual(["b", cleanUpId("a")]);
});

test("a job that was cancelled before its turn has nothing to clean up, and costs no request more", async () => {
  const waits = await turnAfter("pending", "rejected_canceled", [{ id: cleanUpId("b"), state: "pending" }]);
  expect(waits.turn).toEqual(["a"]);
  expect(waits.read).not.toContain(cleanUpId("b"));
});
