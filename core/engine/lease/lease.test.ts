import { describe, expect, test } from "vitest";
import { SimulatedJob } from "../../../testing/simulation/simulated-job.ts";
import type { JobContext } from "../../author/context.ts";
import { RULES_OF_0_9 } from "../../resonate/connection/server-rules.ts";
import { storedMarkId } from "../../resonate/ids.ts";
import { markedBytes } from "../../resonate/size.ts";
import type { When } from "../job-lease.ts";
import { LeaseLost } from "../job-lease.ts";
import type { StepFeature } from "../step-feature.ts";
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

/** A lease whose server answers with the statuses of `answer`, and the requests that the server got. `over`: settled promises. */
function leased(answer: (kind: string, id: string) => number, rules = RULES_OF_0_9, over = new Set<string>()) {
  const requests: {
    kind: string;
    created?: string;
    due?: number;
    tags?: Record<string, string>;
    awaited?: string[];
  }[] = [];
  const send: Send = async (kind, data) => {
    const {
      id = "",
      action,
      actions,
    } = data as {
      id?: string;
      action?: { data: { id: string; timeoutAt: number; tags: Record<string, string> } };
      actions?: { data: { awaited: string } }[];
    };
    const awaited = actions?.map(({ data }) => data.awaited);
    const { id: created = "", timeoutAt: due = 0, tags = {} } = action?.data ?? {};
    requests.push({ kind, ...(action && { created, due, tags }), ...(awaited && { awaited }) });
    const isOvertaken = awaited?.some((each) => over.has(each));
    const status = isOvertaken ? 300 : answer(kind, id);
    const state = over.has(created) ? ("resolved" as const) : ("pending" as const);
    return { status, data: { promise: promise(id), action: { data: { promise: { ...promise(created), state } } } } };
  };
  const held = { task: { id: "job", version: 1 }, promise: promise("job") };
  const lease: TaskLease = new TaskLease(held, {
    send,
    watch: (id) => lease.get(id),
    rules: { ...rules },
  });
  return { lease, requests };
}

describe("a suspension that the server refuses", () => {
  test("because an awaited job is gone: the execution goes on and finds out which", async () => {
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

  test("because it does not wait for other jobs: the task waits for a wake-up promise of its own job instead", async () => {
    let refusals = 1;
    const { lease, requests } = leased((kind) => (kind === "task.suspend" && refusals-- > 0 ? 400 : 200));
    expect(await lease.suspend(["other"])).toBe(true);
    expect(requests.map(({ kind }) => kind)).toContain("task.fence");
  });

  test("whose wake-up promise has settled: the task waits for another one, each due after twice the time", async () => {
    const over = new Set(["job:w1.1"]);
    const { lease, requests } = leased(() => 200, { ...RULES_OF_0_9, refusesOthers: true }, over);
    // The job goes on under the same lease, because its own promise has settled, for longer than the wake-up promise lasts.
    expect(await lease.suspend(["other", "job:w1.1"])).toBe(false);
    for (const id of ["job:n1", "job:n1.1"]) over.add(id);
    expect(await lease.suspend(["other"])).toBe(true);
    await lease.suspend(["other"]);
    expect(requests.flatMap(({ awaited }) => awaited ?? [])).toEqual(["job:w1.1", "job:n1", "job:n1.2", "job:n1.2"]);
    const created = requests.filter((each) => each.created);
    expect(created.map((each) => each.created)).toEqual(["job:n1", "job:n1", "job:n1.1", "job:n1.2", "job:n1.2"]);
    const [, first = 0, second = 0, third = 0] = created.map(({ due = 0 }) => Math.round((due - Date.now()) / 10_000));
    expect([first, second, third]).toEqual([3, 6, 12]);
  });
});

describe.each<["sleep" | "callback", (at: number) => When]>([
  ["sleep", (due) => ({ due })],
  ["callback", (until) => ({ until })],
])("the promise of a %s", (what, when) => {
  test.each([
    ["without a target, where every promise times out by itself", false],
    ["with a target that no worker serves, where promises without a target do not time out", true],
  ])("is created %s", async (_where, armsTargetsOnly) => {
    const { lease, requests } = leased(() => 200, { ...RULES_OF_0_9, armsTargetsOnly: async () => armsTargetsOnly });
    const at = Date.now() + 5_000;
    await lease.create("job:w1.1", undefined, when(at));
    const tags = requests[0]?.tags ?? {};
    expect("resonate:target" in tags).toBe(armsTargetsOnly);
    expect(tags["resonate:delay"]).toBe(armsTargetsOnly ? String(at - 1) : undefined);
    expect("resonate:timer" in tags).toBe(what === "sleep");
  });
});

describe("the storage of a job", () => {
  const kept = "x".repeat(49_000);
  const MARKS = new Map(Array.from({ length: 50 }, (_, n) => [storedMarkId("job", n), n]));
  const marksOf = (job: SimulatedJob) => job.sim.promises().flatMap((id) => MARKS.get(id) ?? []);

  test("is marked from a certain size on, and each time it doubles, by workers that remember the job and by others", async () => {
    const job = new SimulatedJob(
      async (ctx: JobContext<object>, { count }: { count: number }) => {
        for (let n = 0; n < count; n++) {
          await ctx.emit(kept);
          if (n % 12 === 11) await ctx.sleep("a while", 1_000);
        }
      },
      { args: { count: 48 } },
    );
    expect((await job.next()).kind).toBe("asleep");
    expect(marksOf(job)).toEqual([1, 2]);
    job.forget();
    await job.toEnd();
    expect(marksOf(job)).toEqual([1, 2, 3, 4]);
    const small = new SimulatedJob(async (ctx: JobContext<object>) => ctx.emit("a little"));
    await small.toEnd();
    expect(marksOf(small)).toEqual([]);
  });

  /** Stores as many bytes outside of the job as the value of a step says. */
  const storing: StepFeature = {
    async attempt(attempt, next) {
      const value = await next();
      if (typeof value === "number") attempt.outsideBytes += value;
      return value;
    },
  };

  test("is marked with what is outside of it, which does not count towards the job's limit, by workers that remember and by others", async () => {
    const code = async (ctx: JobContext<object>) => {
      await ctx.step("record", () => 2 ** 29);
      await ctx.sleep("a while", 1_000);
      await ctx.step("record more", () => 2 ** 29 + 1);
      await ctx.sleep("a while more", 1_000);
    };
    const job = new SimulatedJob(code, { steps: [storing] });
    expect((await job.next()).kind).toBe("asleep");
    expect(marksOf(job)).toEqual([1, 8, 9, 10, 11, 12]);
    job.forget();
    expect((await job.toEnd()).kind).toBe("complete");
    expect(marksOf(job)).toEqual([1, 8, 9, 10, 11, 12, 13]);
    expect(await markedBytes(async (n) => marksOf(job).includes(n))).toBe(2 ** 31);
  });

  test("is marked with what an `until` stores outside of it, by workers that remember and by others", async () => {
    const code = async (ctx: JobContext<object>) => {
      await ctx.until("film", { every: 1_000 }, () => 2 ** 30 - 2 ** 20);
      await ctx.sleep("a while", 1_000);
      await ctx.step("more", () => "a record");
    };
    const job = new SimulatedJob(code, { steps: [storing] });
    expect((await job.next()).kind).toBe("asleep");
    const marks = marksOf(job);
    expect(await markedBytes(async (n) => marks.includes(n))).toBe(2 ** 30);
    job.forget();
    expect((await job.toEnd()).kind).toBe("complete");
    expect(job.journal.outsideBytes).toBe(2 ** 30 - 2 ** 20);
    expect(marksOf(job)).toEqual(marks);
  });
});
