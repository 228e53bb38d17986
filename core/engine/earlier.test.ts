import { beforeEach, expect, test } from "vitest";
import { Simulation } from "../../testing/simulation.ts";
import type { Answer, Context, Question } from "../definitions/context.ts";
import { encodeValue, lineage } from "../store/codec.ts";
import { earlierQuestions } from "./earlier.ts";
import { Execution, type ExecutionEnd } from "./execution.ts";
import { Journal } from "./journal.ts";
import { TaskLease } from "./lease.ts";

const question = (message: string): Question => ({
  message,
  requestedSchema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] },
});
const yes: Answer = { action: "accept", content: { ok: true } };
const no: Answer = { action: "decline" };

let sim: Simulation;
beforeEach(async () => {
  sim = new Simulation();
  await sim.start("job", {}, Date.now() + 60_000);
});

/** What the job did before there were records: `n` counts all that it did. */
async function did(n: number, param: unknown): Promise<void> {
  const id = `job:${n}`;
  const data = { id, timeoutAt: Date.now() + 60_000, param: encodeValue(param), tags: lineage("job", id) };
  await sim.send("promise.create", data);
}

/** One pass over the job by a worker that knows nothing of it. */
async function pass(fn: (ctx: Context) => Promise<unknown>): Promise<ExecutionEnd> {
  const acquired = await sim.acquire("job");
  if (!acquired) throw new Error("it sleeps");
  const lease = new TaskLease(acquired, sim.send);
  const history = new Journal();
  await history.load("job", (id) => lease.get(id));
  const around = {
    jobName: "job",
    deadline: acquired.promise.timeoutAt,
    env: {},
    log: { debug() {}, info() {}, warn() {}, error() {} },
    metrics: { count() {}, observe() {} },
    signal: new AbortController().signal,
    start: async () => "",
    promiseOf: (name: string) => name,
    askedBefore: earlierQuestions("job", history, (id) => lease.get(id)),
  };
  return new Execution(fn as never, {}, history, lease, around).run();
}

const open = () => sim.promises().filter((id) => id !== "job" && sim.get(id)?.state === "pending");

test("a question that was asked and is not answered is waited for, and not asked again", async () => {
  await did(0, question("Go on?"));
  const fn = (ctx: Context) => ctx.ask("go on", question("Go on?"));
  expect(await pass(fn)).toEqual({ kind: "asleep" });
  expect(open()).toEqual(["job:0"]);
  sim.settle("job:0", "resolved", yes);
  expect(await pass(fn)).toEqual({ kind: "complete", value: yes });
});

test("one that was answered is not asked again, whatever was done before it", async () => {
  await did(0, { func: "tell" });
  await did(1, undefined);
  await did(2, question("Go on?"));
  sim.settle("job:2", "resolved", no);
  expect(await pass((ctx) => ctx.ask("go on", question("Go on?")))).toEqual({ kind: "complete", value: no });
});

test("of two that say the same each is answered with its own answer, in every pass", async () => {
  await did(0, question("Go on?"));
  await did(1, question("Go on?"));
  sim.settle("job:0", "resolved", yes);
  const fn = async (ctx: Context) => [
    await ctx.ask("first", question("Go on?")),
    await ctx.ask("second", question("Go on?")),
  ];
  expect(await pass(fn)).toEqual({ kind: "asleep" });
  sim.settle("job:1", "resolved", no);
  expect(await pass(fn)).toEqual({ kind: "complete", value: [yes, no] });
});

test("one that nobody was asked is asked", async () => {
  await did(0, question("Go on?"));
  sim.settle("job:0", "resolved", yes);
  const fn = (ctx: Context) => ctx.ask("go on", question("Go on, with 7 requests?"));
  expect(await pass(fn)).toEqual({ kind: "asleep" });
  expect(open()).toEqual(["job:e1"]);
});
