import { expect, test } from "vitest";
import type { Lease } from "../../core/engine/job-lease.ts";
import { encodeValue, lineage, ORDER_TAG } from "../../core/resonate/codec.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { begunId, cleanUpId, orderId } from "../../core/resonate/ids.ts";
import { turnOf } from "./turn.ts";

const chain = orderId("", "visit", "ada");
type Known = Pick<PromiseRecord, "id"> & Partial<PromiseRecord>;

const NOW = 60_000;
/** How long clean-ups may take. */
const TIME = 30_000;
/** When the clean-up of a job that was cancelled at the time 1 is no longer waited for. */
const OVER = 1 + TIME + 600_000;

/** The turn of the job `c` after `a` and `b`, of which `a` has begun, and the ids that were read. */
async function turnAfter(
  a: PromiseRecord["state"],
  b: PromiseRecord["state"],
  also: Known[] = [],
  { limit = 1, now = NOW } = {},
) {
  const jobs = { a, b, c: "pending" as const };
  const known = new Map<string, PromiseRecord>();
  const add = ({ id, ...promise }: Known) =>
    known.set(id, {
      id,
      state: "resolved",
      param: {},
      value: {},
      tags: lineage(id),
      timeoutAt: 9e12,
      createdAt: 1,
      ...promise,
    });
  for (const [i, [id, state]] of Object.entries(jobs).entries()) {
    add({ id: chain + (i + 1), param: encodeValue({ job: id, by: id }) });
    add({ id, state, tags: { ...lineage(id), [ORDER_TAG]: chain + (i + 1) } });
  }
  for (const each of [{ id: begunId("a"), param: encodeValue({ beside: [] }) }, ...also]) add(each);
  const read: string[] = [];
  const created = new Map<string, unknown>();
  const lease = {
    get: async (id: string) => {
      read.push(id);
      return known.get(id);
    },
    create: async (id: string, _param: unknown, when: { due: number } | "resolved") => {
      const isPending = when !== "resolved" && when.due > now;
      created.set(id, when);
      return { id, state: isPending ? "pending" : "resolved" };
    },
  };
  const terms = { limit, cleanupTimeMs: TIME };
  const turn = await turnOf(known.get("c") as PromiseRecord, terms, lease as unknown as Lease, now);
  return { turn, read, created };
}

test("a job waits for the clean-up of a cancelled job that had begun, until the clean-up has ended or timed out", async () => {
  const after = (state: PromiseRecord["state"]) =>
    turnAfter("rejected_canceled", "resolved", [{ id: cleanUpId("a"), state }]);
  const { turn, created } = await after("pending");
  expect(turn).toEqual([cleanUpId("a"), expect.anything()]);
  expect(created.get(turn[1] as string)).toEqual({ due: OVER });
  expect((await after("resolved")).turn).toBe("now");
  expect((await after("rejected_timedout")).turn).toBe("now");
  expect((await turnAfter("rejected_canceled", "resolved")).turn).toBe("now");
});

test("a job that another one began beside is waited for until its clean-up has ended", async () => {
  const also = [
    { id: begunId("b"), param: encodeValue({ beside: ["a"] }) },
    { id: cleanUpId("a"), state: "pending" as const },
  ];
  const { turn } = await turnAfter("rejected_canceled", "pending", also, { limit: 2 });
  expect(turn).toEqual(["b", cleanUpId("a"), expect.anything()]);
});

test("a clean-up that no worker can do is waited for until its time is over, also by jobs that are to begin beside it", async () => {
  const cleanUp = { id: cleanUpId("a"), state: "pending" as const };
  const late = await turnAfter("rejected_canceled", "resolved", [cleanUp], { now: OVER });
  expect([late.turn, late.created.get(begunId("c"))]).toEqual(["now", "resolved"]);
  const also = [{ id: begunId("b"), param: encodeValue({ beside: [cleanUp.id] }) }, cleanUp];
  const beside = (now: number) => turnAfter("resolved", "pending", also, { limit: 2, now });
  expect((await beside(OVER - 1)).turn).toEqual(["b", cleanUp.id, expect.anything()]);
  expect((await beside(OVER)).turn).toBe("now");
});

test("the timer of a clean-up takes no turn", async () => {
  const also = [{ id: cleanUpId("a"), state: "pending" as const }];
  expect((await turnAfter("rejected_canceled", "resolved", also, { limit: 2 })).turn).toBe("now");
});

test("a job that was cancelled before its turn has nothing to clean up, and costs no request more", async () => {
  const waits = await turnAfter("pending", "rejected_canceled", [{ id: cleanUpId("b"), state: "pending" }]);
  expect(waits.turn).toEqual(["a"]);
  expect(waits.read).not.toContain(cleanUpId("b"));
});
