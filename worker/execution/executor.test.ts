import { expect, test } from "vitest";
import { type LeaseLossReason, LeaseLost } from "../../core/engine/job-lease.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import type { TaskEvent } from "../../core/jobs/task-feature.ts";
import { jobRun, jobTask, keptLog } from "../../test/support/job-run.ts";
import { Executor } from "./executor.ts";

/** Executes a job, or a feature's own task, with these features; `fails`: the error of its function. */
async function executed(features: readonly WorkerFeature[], { fails, func = "tea" }: { fails?: Error; func?: string }) {
  const { lines, log } = keptLog();
  const events: TaskEvent["type"][] = [];
  const { run } = jobRun();
  const executor = new Executor({
    features,
    observe: async ({ type }) => void events.push(type),
    leases: { on: () => run.lease } as never,
    journals: { read: async () => run.memory } as never,
    runs: {
      prepare: (task: object) => ({ ...run, ...task }),
      executeAll: async () => {
        if (fails) throw fails;
        return { kind: "complete", value: 1 };
      },
    } as never,
    namespace: "",
    log,
  });
  const { claim, call, code } = jobTask();
  await executor.execute(claim, func === "tea" ? { call, code } : { call: { ...call, func }, code: undefined });
  return { events, lines };
}

/** A feature that writes into `steps` when it acts. */
const acting = (name: string, steps: string[], more: Partial<WorkerFeature> = {}): WorkerFeature => ({
  name,
  task: async (_task, next) => {
    steps.push(`${name} task`);
    const ending = await next();
    steps.push(`${name} ${ending}`);
    return ending;
  },
  run: (_run, next) => {
    steps.push(`${name} run`);
    return next();
  },
  ...more,
});

test("features act around a task in their order, and only those that its kind asks for", async () => {
  const steps: string[] = [];
  const features = [
    acting("outer", steps),
    acting("inner", steps),
    acting("of ordered kinds", steps, { isFor: ({ concurrency }) => concurrency !== undefined }),
  ];
  const { lines } = await executed(features, {});
  expect(steps).toEqual(["outer task", "inner task", "outer run", "inner run", "inner complete", "outer complete"]);
  expect(lines).toEqual([{ job: "tea_1", msg: "job started" }]);
});

test("a feature's own task is executed by that feature, within the features before it", async () => {
  const steps: string[] = [];
  const own: WorkerFeature = { name: "own", functions: ["brew"], isFor: () => false, task: async () => "complete" };
  const features = [acting("before", steps), own, acting("after", steps)];
  await executed(features, { func: "brew" });
  expect(steps).toEqual(["before task", "before complete"]);
  await executed(features, {});
  expect(steps).toContain("after run");
});

test.each<[reason: LeaseLossReason, ending: string, events: TaskEvent["type"][]]>([
  ["taken", "left", ["leaseLost"]],
  ["lapsed", "left", ["leaseLost"]],
  ["settled", "left", ["leaseLost"]],
  ["unreachable", "left", []],
  ["ended", "left", []],
  ["refused", "blocked", ["blocked"]],
])("a job whose lease is lost because it is %s is %s", async (reason, ending, expected) => {
  const steps: string[] = [];
  const fails = new LeaseLost("the words", { reason });
  const { events, lines } = await executed([acting("outer", steps)], { fails });
  expect(events.filter((type) => type !== "started")).toEqual(expected);
  expect(steps.at(-1)).toBe(`outer ${ending}`);
  expect(lines.at(-1)).toEqual({ job: "tea_1", reason: "the words", msg: `job ${ending}` });
});

test("an error of a feature before the job begins leaves the job", async () => {
  const broken: WorkerFeature = { name: "broken", task: async () => Promise.reject(new Error("no answer")) };
  const { events, lines } = await executed([broken], {});
  expect(events).toEqual([]);
  expect(lines).toEqual([{ job: "tea_1", reason: "no answer", msg: "job left" }]);
});
