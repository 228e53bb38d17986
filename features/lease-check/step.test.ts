/** A worker that has lost a job makes no attempt at its steps. */
import { expect, test } from "vitest";
import type { Context } from "../../core/author/context.ts";
import { LeaseLost } from "../../core/engine/job-lease.ts";
import type { LeaseRef } from "../../core/resonate/connection/protocol.ts";
import { JOB_NAME, SimulatedJob } from "../../testing/simulation/simulated-job.ts";
import { leaseCheck } from "./step.ts";

/** The error of a job whose worker has this answer to whether it has the lease, and how often the step's function was called. */
async function endWith(isOurs: (task: LeaseRef) => Promise<boolean>) {
  let calls = 0;
  const job = new SimulatedJob((ctx: Context) => ctx.step("pay", () => ++calls), { steps: [leaseCheck({ isOurs })] });
  const error = await job.execute().then(
    () => undefined,
    (error: unknown) => error,
  );
  return { calls, error };
}

test("an attempt is made under a lease that is this worker's", async () => {
  const asked: LeaseRef[] = [];
  const { calls, error } = await endWith(async (task) => asked.push(task) > 0);
  expect([calls, error]).toEqual([1, undefined]);
  expect(asked).toEqual([{ id: JOB_NAME, version: 1 }]);
});

test("no attempt is made under a lease that has lapsed", async () => {
  const { calls, error } = await endWith(async () => false);
  expect([calls, error]).toEqual([0, expect.any(LeaseLost)]);
});

test("no attempt is made if the server does not say whose the lease is", async () => {
  const { calls, error } = await endWith(async () => Promise.reject(new Error("the server is down")));
  expect([calls, error]).toEqual([0, expect.objectContaining({ name: "LeaseLost", message: "the server is down" })]);
});
