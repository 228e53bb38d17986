/**
 * The engine continues jobs whose state was written at commit 1c007cb. `stored-state.json` holds the promises of one
 * simulated job, with every kind of record, and the moments at which the job was suspended.
 */
import { expect, test } from "vitest";
import { JOB, SimulatedJob } from "../../../testing/simulation/simulated-job.ts";
import { type Context, DAY, HOUR, MINUTE, NonRetryableError } from "../../author/context.ts";
import { decodeValue } from "../../resonate/codec.ts";
import type { PromiseRecord } from "../../resonate/connection/protocol.ts";
import stored from "./stored-state.json" with { type: "json" };

const question = { message: "Go on?", requestedSchema: { type: "object" as const, properties: {} } };
const other = { kind: "other", args: { parse: (value: unknown) => value as object } };

/** The code of the stored job; `done` collects the steps that run in this test. */
const codeOf = (done: string[], isUp: () => boolean) => async (ctx: Context) => {
  const run = <T>(name: string, value: T) => {
    done.push(name);
    return value;
  };
  const page = await ctx.step("page", () => run("page", { text: "the page" }));
  const refused = await ctx
    .step("refused", () => Promise.reject(run("refused", new NonRetryableError("no"))))
    .catch(({ name, message, code }) => [name, message, code]);
  await ctx.sleep("a while", HOUR);
  const answer = await ctx.ask("go on", question);
  const { winner } = await ctx.race({
    quick: (branch) => branch.step("quick", () => run("race/quick/quick", 1)),
    slow: (branch) => branch.sleep("slow", DAY),
  });
  const sides = await ctx.all(["left", "right"], async (side, key) => {
    await side.sleep("rest", MINUTE);
    return side.step("paint", () => run(`all/${key}/paint`, key.toUpperCase()));
  });
  const paid = await ctx.step("pay", () => run("pay", "paid"), { atMostOnce: true });
  const patient = { retry: { initialInterval: MINUTE } };
  const tried = await ctx.step(
    "try",
    ({ attempt }) => (attempt < 3 ? Promise.reject(new Error("503")) : attempt),
    patient,
  );
  const up = await ctx.until("up", { every: MINUTE }, () => isUp() && { up: true });
  const found = await ctx.await(await ctx.start(other, {}));
  await ctx.sleep("far", DAY);
  return { page, refused, answer, winner, sides, paid, tried, up, found };
};

/** The job as it was stored at the time `now`. */
async function restored(code: (ctx: Context) => Promise<unknown>, now: number): Promise<SimulatedJob> {
  const job = new SimulatedJob(code);
  job.clock.moveTo(now);
  for (const promise of stored.promises as PromiseRecord[]) {
    const { id, timeoutAt, param, tags, createdAt, settledAt = Number.POSITIVE_INFINITY, value } = promise;
    if (createdAt > now) continue;
    await job.sim.send("promise.create", { id, timeoutAt, param, tags });
    if (settledAt <= now) job.sim.settle(id, "resolved", decodeValue(value));
  }
  // Takes and loses the lease of the worker that ran the job then.
  await job.sim.acquire(JOB);
  job.sim.kill(JOB);
  return job;
}

test.each(stored.moments)("a job stored at the moment when $at goes on", async ({ now }) => {
  const done: string[] = [];
  let looks = 0;
  const code = codeOf(done, () => ++looks === 3);
  const job = await restored(code, now);
  const recorded = new Set(job.paths());
  for (let end = await job.next(); ; end = await job.next()) {
    if (job.paths().at(-1) === "go on") job.answer("go on", { action: "accept", content: { yes: true } });
    if (job.paths().at(-1) === "start other") job.sim.settle("other", "resolved", { days: 3 });
    if (end.kind === "asleep") continue;
    const root = stored.promises.find(({ id }) => id === JOB) as PromiseRecord;
    // The function's result has properties with the value undefined, which JSON leaves out.
    expect(JSON.parse(JSON.stringify(end))).toEqual({ kind: "complete", value: decodeValue(root.value) });
    break;
  }
  expect(done.filter((path) => recorded.has(path))).toEqual([]);
});
