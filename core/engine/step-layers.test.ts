/** What features do around steps, attempts and records, in their order. */
import { expect, test } from "vitest";
import { SimulatedJob } from "../../testing/simulation/simulated-job.ts";
import { type Context, MINUTE, NonRetryableError, type StepOptions } from "../author/context.ts";
import { RecordRefused, type StepFeature } from "./step-feature.ts";
import { layersOf } from "./step-layers.ts";

/** A feature that notes when it acts. */
const noting = (name: string, notes: string[], more: Partial<StepFeature> = {}): StepFeature => ({
  async step({ path }, next) {
    notes.push(`${name}: step ${path}`);
    const outcome = await next();
    notes.push(`${name}: ${outcome && "error" in outcome ? "failed" : "done"}`);
    return outcome;
  },
  attempt({ step }, next) {
    notes.push(`${name}: attempt ${step.attempt}`);
    return next();
  },
  ...more,
});

const run = (steps: readonly StepFeature[], fn: () => unknown, options: StepOptions = {}) =>
  new SimulatedJob((ctx: Context) => ctx.step("pay", fn, options), { steps }).toEnd();

test("the first feature is outermost, around the step as well as around its attempt", async () => {
  const notes: string[] = [];
  await run([noting("a", notes), noting("b", notes)], () => notes.push("pays"));
  expect(notes).toEqual(["a: step pay", "b: step pay", "a: attempt 1", "b: attempt 1", "pays", "b: done", "a: done"]);
});

test("a feature acts on each try of a step, and hears how it ended and when the next is due", async () => {
  const outcomes: unknown[] = [];
  const feature: StepFeature = {
    async step(_step, next) {
      const outcome = await next();
      outcomes.push(outcome);
      return outcome;
    },
  };
  let tries = 0;
  const fails = () => {
    tries += 1;
    if (tries < 3) throw new Error("503");
    return "paid";
  };
  await run([feature], fails, { retry: { initialInterval: MINUTE } });
  expect(outcomes).toEqual([
    { error: new Error("503"), attempt: 1, retryInMs: expect.any(Number) },
    { error: new Error("503"), attempt: 2, retryInMs: expect.any(Number) },
    { value: "paid" },
  ]);
});

test("a feature may give a step its outcome without an attempt", async () => {
  const gives = (outcome: { value: unknown } | { error: unknown }) =>
    run([{ step: async () => outcome }], () => {
      throw new Error("an attempt was made");
    });
  expect(await gives({ value: "known" })).toEqual({ kind: "complete", value: "known" });
  const failed = await gives({ error: new NonRetryableError("it cannot be done") });
  expect(failed).toMatchObject({ kind: "failed", error: { message: "it cannot be done" } });
});

test("a feature of an option acts only on steps that have it", async () => {
  const notes: string[] = [];
  const limited = noting("limits", notes, { stepOptions: ["concurrency", "rate"] });
  await run([limited], () => 1);
  await run([limited], () => 1, { timeout: MINUTE });
  expect(notes).toEqual([]);
  await run([limited], () => 1, { rate: { name: "upstream", limit: 1, per: MINUTE } });
  expect(notes).toEqual(["limits: step pay", "limits: attempt 1", "limits: done"]);
});

test("the checks of an `until` are attempts, and no steps", async () => {
  const notes: string[] = [];
  const code = (ctx: Context) => ctx.until("paid", { every: MINUTE }, () => notes.push("checks") > 3);
  await new SimulatedJob(code, { steps: [noting("a", notes)] }).toEnd();
  expect(notes).toEqual(["a: attempt 1", "checks", "a: attempt 1", "checks"]);
});

test("a call whose record a feature refuses fails with its error, and the function may catch it", async () => {
  const feature: StepFeature = {
    async record({ bytes }, next) {
      if (bytes > 1_000) throw new RecordRefused("it is too large");
      return next();
    },
  };
  const code = (ctx: Context) => ctx.step("pay", () => "x".repeat(2_000)).catch((error) => [error.name, error.message]);
  const end = await new SimulatedJob(code, { steps: [feature] }).toEnd();
  expect(end).toEqual({ kind: "complete", value: ["NonRetryableError", "it is too large"] });
});

test("a feature acts on records once the job has stored as much as it says", async () => {
  let refusals = 0;
  const feature: StepFeature = {
    recordFromBytes: 5_000,
    async record() {
      refusals += 1;
      throw new Error("it acts");
    },
  };
  const { record } = layersOf([feature]);
  const recordAt = (storedBytes: number) => record({ bytes: 1, storedBytes, run: async () => ({}) as never });
  await recordAt(4_999);
  expect(refusals).toBe(0);
  await expect(recordAt(5_000)).rejects.toThrow("it acts");
});

test("the layers of a list of features are put together once", () => {
  const features: StepFeature[] = [];
  expect(layersOf(features)).toBe(layersOf(features));
});
