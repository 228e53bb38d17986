import { describe, expect, test } from "vitest";
import { RULES_OF_0_9 } from "../../store/connection/server-rules.ts";
import { machineClock } from "../clock.ts";
import { LeaseLost } from "../runtime.ts";
import { type Send, TaskLease } from "./lease.ts";

const promise = (id: string) => ({
  id,
  state: "pending" as const,
  param: {},
  value: {},
  tags: {},
  timeoutAt: Date.now() + 60_000,
  createdAt: Date.now(),
});

/** A lease whose server answers as it is told, and the requests that it got. */
function leased(answer: (kind: string, id: string) => number, rules = RULES_OF_0_9) {
  const requests: { kind: string; tags?: Record<string, string> | undefined }[] = [];
  const send: Send = async (kind, data) => {
    const { id = "", action } = data as {
      id?: string;
      action?: { data: { id: string; tags: Record<string, string> } };
    };
    requests.push({ kind, tags: action?.data.tags });
    const status = answer(kind, id);
    return { status, data: { promise: promise(id), action: { data: { promise: promise(action?.data.id ?? "") } } } };
  };
  const held = { task: { id: "job", version: 1 }, promise: promise("job") };
  return { lease: new TaskLease(held, send, undefined, machineClock, { ...rules }), requests };
}

describe("a suspension that the server cannot make", () => {
  test("since an awaited job is gone: the execution goes on and finds out which", async () => {
    const { lease } = leased((kind, id) => (kind === "task.suspend" ? 422 : id === "other" ? 404 : 200));
    expect(await lease.suspend(["other", "job:w1.1"])).toBe(false);
  });

  test("for another reason ends the execution, and does not stop later jobs from waiting for others", async () => {
    const { lease } = leased((kind) => (kind === "task.suspend" ? 422 : 200));
    await expect(lease.suspend(["other"])).rejects.toThrow(LeaseLost);
    const { lease: next, requests } = leased(() => 200);
    expect(await next.suspend(["other"])).toBe(true);
    expect(requests.map(({ kind }) => kind)).toEqual(["task.suspend"]);
  });

  test("as it refuses to wait for other jobs: a wake-up promise of the job's own is waited for", async () => {
    let refusals = 1;
    const { lease, requests } = leased((kind) => (kind === "task.suspend" && refusals-- > 0 ? 400 : 200));
    expect(await lease.suspend(["other"])).toBe(true);
    expect(requests.map(({ kind }) => kind)).toContain("task.fence");
  });
});

describe("a timer", () => {
  test.each([
    ["without a target, where every promise times out by itself", false],
    ["with a target that no worker serves, where others do not time out", true],
  ])("is created %s", async (_where, armsTargetsOnly) => {
    const { lease, requests } = leased(() => 200, { ...RULES_OF_0_9, armsTargetsOnly: async () => armsTargetsOnly });
    const due = Date.now() + 5_000;
    await lease.create("job:w1.1", undefined, { due });
    const tags = requests[0]?.tags ?? {};
    expect("resonate:target" in tags).toBe(armsTargetsOnly);
    expect(tags["resonate:delay"]).toBe(armsTargetsOnly ? String(due - 1) : undefined);
  });
});
