/**
 * Compares random durable functions, run under several timings and killed at many points, with a model that has neither timings
 * nor deaths. `npm run proof` runs 10,000 of them, in 15 minutes of processor time; `FUZZ_SEED` and `FUZZ_PATH` repeat one.
 */
import fc from "fast-check";
import { afterAll, expect, test, vi } from "vitest";
import { HOUR, type JobContext } from "../../core/author/context.ts";
import { fromStored } from "../../core/author/values.ts";
import { JournalRecord } from "../../core/engine/journal.ts";
import { hasEffects } from "../../core/engine/replay/commands/commands.ts";
import type { Runnable } from "../../core/engine/runtime.ts";
import { encodeValue } from "../../core/resonate/codec.ts";
import { stepsToKeep } from "../../features/resume/steps-to-keep.ts";
import type { Death, Dependencies, Plan } from "../../testing/simulation/plan.ts";
import { type TrialResult, trial } from "../../testing/simulation/trial.ts";
import { program } from "./arbitrary.ts";
import {
  anew,
  answerTo,
  CANCELLED,
  type Beginning,
  callsInOrder,
  jobOf,
  type Modelled,
  modelInOrder,
  sentTo,
  stored,
} from "./model.ts";
import {
  BUDGET,
  breaksAlone,
  breaksRules,
  counts,
  isTimed,
  mix,
  namesAreSure,
  type Program,
  type ProgramTree,
  runTree,
} from "./program.ts";
import { Traced } from "./traced.ts";

const RUNS = 200 * Number(process.env.FUZZ_TIMES ?? 1);
const SEED = process.env.FUZZ_SEED === undefined ? {} : { seed: Number(process.env.FUZZ_SEED) };
const PATH = process.env.FUZZ_PATH === undefined ? {} : { path: process.env.FUZZ_PATH };

/** The numbers of timings without deaths, of runs with deaths, and of runs with a cancellation, for each program. */
const TIMINGS = 3;
const DEATHS = 9;
const CANCELS = 4;

interface Run extends TrialResult {
  /** For each of the job's runs, the outcomes in the order in which they reached the function in the last execution. */
  orders: string[][];
  /** The steps that the first run attempted. A later run has its own names and takes nothing over. */
  attempted: ReadonlySet<string>;
  plan: string;
}

function randomOf(seed: number): () => number {
  let state = mix(seed, "random");
  return () => {
    state = mix(state, 1);
    return state / 2 ** 32;
  };
}

interface How {
  seed: number;
  timing: number;
  deaths: Death[];
  isWarm: boolean;
  cancel?: Plan["cancel"];
  /** The job's generation, counted from 1, and the records that it takes over. */
  attempt?: number;
  memo?: ReadonlyMap<string, JournalRecord> | undefined;
}

/** Timing 0 is steady: everything takes its nominal time, and requests take none. Other timings are derived from `seed`. */
async function runOf({ trees }: Program, { attempt = 1, memo, ...how }: How): Promise<Run> {
  const { seed, timing, deaths, isWarm, cancel } = how;
  const random = randomOf(mix(seed, timing));
  const isSteady = timing === 0;
  vi.spyOn(Math, "random").mockImplementation(random);
  const orders: string[][] = [];
  const attempted = new Set<string>();
  const soon = (most: number, steady: number) => (isSteady ? steady : Math.floor(random() * most));
  const dependencies: Dependencies = {
    budget: BUDGET,
    ...(memo && { finishedSteps: memo }),
    answer: (name) => ({ after: soon(300, 60), answer: answerTo(name) }),
    callback: (path) => {
      const value = sentTo(path);
      return value && { after: soon(300, 60), value };
    },
    nameOf: async ({ kind }) => kind,
    job: (name) => {
      const settled = jobOf(name);
      const after = soon(200, 30);
      return "error" in settled ? { after, error: fromStored(settled.error) } : { after, result: settled.value };
    },
    onAttempt: (step) => void (orders.length === 1 && attempted.add(step)),
  };
  const latency = isSteady ? {} : { latency: () => Math.floor(random() * 4) * Math.floor(random() * 4) };
  const plan: Plan = { deaths, isWarm, hasNews: timing % 3 !== 2, ...latency, ...(cancel && { cancel }) };
  const ended = await trial(
    (clock, isTakenOver) => {
      const begun = new Set<number>();
      const speed = () => (isSteady ? 1 : [0.1, 0.5, 1, 3][Math.floor(random() * 4)]) as number;
      const machine = { attempt, pause: (ms: number) => clock.pause(ms), now: clock.now, speed };
      return (async (ctx: JobContext<Args>, { n = 0, seen, limits }: Args) => {
        // Outcomes are not recorded when the engine repeats the function to verify it, or after another worker took the job over.
        const mine: string[] = [];
        if (!begun.has(n) && !isTakenOver()) orders[n] = mine;
        begun.add(n);
        const calls = new Traced(ctx as never, mine, limits);
        const result = await runTree(trees[n] as ProgramTree, calls, machine, seen);
        if (n === trees.length - 1) return result;
        const { denied: _, ...grown } = calls.limits;
        return calls.continueAs({ n: n + 1, seen: result.seen, limits: grown });
      }) as unknown as Runnable;
    },
    {},
    dependencies,
    plan,
  );
  return {
    ...ended,
    orders,
    attempted,
    plan: JSON.stringify({ ...how, attempt, kept: memo && [...memo.keys()] }),
  };
}

/** The arguments of a run of the job; the first run has none. */
type Args = { n?: number; seen?: number; limits?: Record<string, number | "denied"> };

/** Whether the function broke a rule. A value that cannot be stored fails the job as well, but breaks none. */
const isRefused = ({ outcome, error }: Run) =>
  outcome === "failed" && error?.name === "NondeterminismError" && !/^step ".*" returned /.test(error.message);

/** The order of outcomes, completed from the records with the questions about budgets: an answer may lead to the next question. */
function orderOf(order: readonly string[], records: TrialResult["records"]): string[] {
  const undone = records.flatMap(({ event: { kind, op } }) =>
    kind === "step" && /^undo\/(?!end )/.test(op) ? op : [],
  );
  // A function that has returned hears nothing of a cancellation.
  const isCancelled = records.some(({ event }) => event.kind === "cancelled") && !order.includes(CANCELLED);
  const asked = records.flatMap(({ event: { kind, op } }) => (kind === "ask" && / up to /.test(op) ? op : []));
  const whole = order.map((path) =>
    path.endsWith(" up to") ? (asked.find((op) => op.startsWith(path) && !order.includes(op)) ?? path) : path,
  );
  // A step's retries are no outcomes.
  const recorded = records.flatMap(({ event }) => [
    ...(event.after ?? []),
    ...(event.kind === "retry" ? [] : [event.op]),
  ]);
  for (const op of asked) {
    const at = recorded.indexOf(op, recorded.indexOf(op) + 1);
    if (at < 0 || whole.includes(op)) continue;
    const next = recorded.slice(at + 1).find((path) => whole.includes(path));
    whole.splice(next === undefined ? whole.length : whole.indexOf(next), 0, op);
  }
  return [...whole, ...(isCancelled ? [CANCELLED] : []), ...undone];
}

/** Compares the outcome of a job with that of the model for the same order of outcomes; returns the model of the last run. */
async function compare({ trees }: Program, run: Run, { kept, attempt } = anew()): Promise<Modelled> {
  let next: Pick<Beginning, "seen" | "accounts"> = anew();
  for (const [n, { seed, records }] of run.runs.entries()) {
    const order = orderOf(run.orders[n] ?? [], records);
    const ofRun = { ...next, seed, attempt, kept: n === 0 ? kept : new Map() };
    const model = await modelInOrder(trees[n] as ProgramTree, order, ofRun);
    const { end, accounts } = model;
    const about = `${run.plan}, run ${n}\n${JSON.stringify(records)}\n${order.join(" ")}`;
    if (model.problem) throw new Error(`${model.problem}: ${about}`);
    if (!end) throw new Error(`the model has not ended: ${about}`);
    const isLast = n === run.runs.length - 1;
    const goesOn = n < trees.length - 1;
    if (!isLast) expect(end, about).toHaveProperty("value");
    else if ("error" in end) {
      const { name, message } = end.error;
      expect([run.outcome, run.error], about).toEqual(["failed", { name, message }]);
    } else if (goesOn && model.isInterrupted) {
      expect(run.error, about).toMatchObject({ name: "JobCancelled" });
    } else if (goesOn) {
      expect([run.outcome, run.isCancelled], about).toEqual(["complete", true]);
      expect(run.value, about).toMatchObject({ next: { n: n + 1, seen: end.seen } });
    } else expect([run.outcome, stored(run.value)], about).toEqual(["complete", { value: end.value, seen: end.seen }]);
    compareRecords(records, order, model, about);
    if (isLast) return model;
    next = { seen: "error" in end ? 0 : end.seen, accounts };
  }
  throw new Error("there was no run");
}

function compareRecords(records: TrialResult["records"], order: string[], model: Modelled, about: string): void {
  const recorded = records.filter(({ event }) => ["step", "start", "until", "race", "emit"].includes(event.kind));
  const known = new Set(order);
  const paths = recorded.map(({ event }) => event.op).filter((path) => known.has(path));
  const outcomes = new Set(paths);
  expect(
    order.filter((path) => outcomes.has(path)),
    about,
  ).toEqual(paths);
  for (const { event } of recorded) {
    const settled = event.kind === "step" ? model.steps.get(event.op) : undefined;
    if (!settled || event.kind !== "step") continue;
    expect(event.error ? { error: event.error } : { value: event.value }, `${event.op}: ${about}`).toEqual(settled);
  }
}

/** Starts a failed job again. It must go on from its last good step if nothing had reacted to the failure. */
async function resume(program: Program, run: Run, failed: Modelled, how: How): Promise<void> {
  const records = run.records.map(({ n, event }) => new JournalRecord(n, { ...A_PROMISE, param: encodeValue(event) }));
  const found = await stepsToKeep(records, async (path) => run.stateOf(path.split("/").at(-1) as string));
  const memo = typeof found === "string" ? undefined : found;
  const about = `${run.plan}\n${JSON.stringify(run.records)}\n${run.orders.at(-1)}`;
  // Waiting for a callback leaves no record.
  const recorded = new Set(run.records.map(({ event }) => event.op));
  const followed = (path: string) => failed.afterFailure.has(path) && recorded.has(path);
  const reacted = run.orders.at(-1)?.filter(followed) ?? [];
  if (reacted.length > 0) expect(memo, `${reacted} followed a failure: ${about}`).toBeUndefined();
  if (run.runs.length > 1) return;
  const kept = new Map([...(memo ?? [])].map(([path, { value }]) => [path, value]));
  if (memo) {
    const reached = (path: string) => run.orders[0]?.includes(path);
    const well = [...failed.steps].filter(([path, end]) => "value" in end && reached(path));
    // In a race that another branch has won, a step may have succeeded without its result reaching the function.
    expect([...kept.keys()].filter(reached).sort(), about).toEqual(well.map(([path]) => path).sort());
  }
  const again = await runOf(program, { ...how, attempt: 2, memo });
  if (again.outcome === "blocked" || isRefused(again)) return;
  await compare(program, again, { ...anew(), attempt: 2, kept });
  expect(
    [...again.attempted].filter((step) => kept.has(step)),
    `done again: ${about}`,
  ).toEqual([]);
}

const A_PROMISE = { id: "r", state: "resolved" as const, value: {}, tags: {}, timeoutAt: 0, createdAt: 0 };

/** The refusal of a run that ends while one of its flows is still open. */
const STILL_OPEN = /ctx\.continueAs.* is still open/;

async function prove(program: Program, seed: number): Promise<void> {
  const random = randomOf(seed);
  const { trees } = program;
  const roots = trees.map(({ root }) => root);
  const breaks = roots.some(breaksRules);
  const isSure = roots.every(namesAreSure);
  const shares = trees.some((tree) => tree.shares);
  const timed = roots.some((root) => isTimed(root));
  const aloneAsEver = roots.every((root) => breaksAlone(root) === breaksRules(root));
  const runs: Run[] = [];
  const plans: How[] = [];
  const add = async (how: How) => {
    plans.push(how);
    runs.push(await runOf(program, how));
  };
  for (let timing = 0; timing < TIMINGS; timing++) await add({ seed, timing, deaths: [], isWarm: timing % 2 === 0 });
  const most = Math.max(...runs.map(({ requests }) => requests));
  const longest = Math.max(...runs.map(({ duration }) => duration));
  const someDeaths = (i: number): Death[] => {
    const how = (["before", "after", "alone"] as const)[i % 3] as Death["how"];
    const deaths = [{ at: 1 + Math.floor(random() * most), how }];
    if (random() < 0.3) deaths.push({ at: 1 + Math.floor(random() * 2 * most), how: "before" });
    return deaths;
  };
  for (let i = 0; i < DEATHS; i++) {
    await add({ seed, timing: i % 4, deaths: someDeaths(i), isWarm: random() < 0.5 });
  }
  for (const [i, each] of runs.entries()) {
    checkChildren(each);
    if (each.outcome === "blocked" || isRefused(each)) {
      const mayBe = breaks || !isSure || (trees.length > 1 && timed && STILL_OPEN.test(each.error?.message ?? ""));
      if (each.outcome === "blocked" && aloneAsEver) {
        throw new Error(`blocked: ${each.error?.message}\n${each.plan}\n${JSON.stringify(each.records)}`);
      }
      if (!mayBe) throw new Error(`refused: ${each.error?.message}\n${each.plan}\n${JSON.stringify(each.records)}`);
    } else if (!shares || aloneAsEver) {
      const model = await compare(program, each);
      if (each.outcome === "failed" && !breaks && i % 4 === 0) await resume(program, each, model, plans[i] as How);
    }
  }
  if (!breaks && isSure && !shares && !roots.some(counts)) await cancel(program, { seed, random, longest, someDeaths });
  if (timed) return;
  const verdicts = new Set(runs.map(isRefused));
  if (roots.some(breaksAlone)) expect([...verdicts], "it breaks a rule").toEqual([true]);
  if (breaks) return;
  for (const tree of trees) {
    const orders = new Set<string>();
    for (let i = 0; i < 6; i++) orders.add(JSON.stringify([...(await callsInOrder(tree, random))].sort()));
    if (orders.size > 1) expect([...verdicts], "its names are unsure").toEqual([true]);
  }
  if (!shares && !roots.some(counts) && !verdicts.has(true)) {
    const values = new Set(runs.map(({ value }) => JSON.stringify(value)));
    expect([...values], "what is fast decides nothing").toHaveLength(1);
  }
}

/** No child is alive after its parent failed or was cancelled, or after the branch or the item that started it was given up. */
function checkChildren({ outcome, isCancelled, children, stateOf, records, plan }: Run): void {
  const alive = children.filter((name) => stateOf(name) === "pending");
  const about = `${alive} alive: ${plan}\n${JSON.stringify(records)}`;
  if (outcome === "failed" || isCancelled) expect(alive, about).toEqual([]);
  const begun = records.flatMap(({ event }) => (event.kind === "begin" && event.of === "start" ? [event] : []));
  for (const { event } of outcome === "complete" ? records : []) {
    if (event.kind !== "race") continue;
    const isLost = ({ op }: { op: string }) =>
      op.startsWith(`${event.op}/`) && !op.startsWith(`${event.op}/${event.winner}/`);
    const lost = begun.filter((each) => isLost(each) && alive.includes(each.child));
    const isWanted = (child: string) => begun.some((each) => each.child === child && !isLost(each));
    expect(
      lost.filter(({ child }) => !isWanted(child)),
      about,
    ).toEqual([]);
  }
}

/** Runs jobs that are cancelled. The worker hears of it soon or late, or dies; the workers that clean up may die as well. */
async function cancel(
  program: Program,
  {
    seed,
    random,
    longest,
    someDeaths,
  }: { seed: number; random(): number; longest: number; someDeaths(i: number): Death[] },
): Promise<void> {
  for (let i = 0; i < CANCELS; i++) {
    const cancel = { after: Math.floor(random() * (longest + 1)), noticeDelay: Math.floor(random() ** 3 * 8_000) };
    const deaths = i % 2 === 0 ? [] : someDeaths(i);
    const each = await runOf(program, { seed, timing: i % 4, deaths, isWarm: random() < 0.5, cancel });
    const about = `cancelled: ${each.error?.message}\n${each.plan}\n${JSON.stringify(each.records)}`;
    if (each.outcome === "blocked") throw new Error(about);
    checkChildren(each);
    const cancelledAt = each.records.findIndex(({ event }) => event.kind === "cancelled");
    const later = cancelledAt < 0 ? [] : each.records.slice(cancelledAt + 1).filter(({ event }) => hasEffects(event));
    for (const { event } of later) expect(event.op, about).toMatch(/(^|\/)(cleanup|end) |^undo\//);
    if (!isRefused(each)) await compare(program, each);
    else if (!STILL_OPEN.test(each.error?.message ?? "")) throw new Error(about);
  }
}

afterAll(() => vi.restoreAllMocks());

test("no death and no timing changes the outcome of a durable function", { timeout: 10 * HOUR }, async () => {
  const property = fc.asyncProperty(program, fc.nat(), prove);
  // In long runs a failing program is not shrunk: that takes longer than reading the large one.
  await fc.assert(property, { numRuns: RUNS, ...SEED, ...PATH, endOnFailure: RUNS >= 1_000 });
});
