/**
 * Durable functions made at random, run under several timings and killed everywhere, against a model that knows neither.
 * `FUZZ_RUNS` says how many (10000 take a quarter of an hour of a processor); `FUZZ_SEED` and `FUZZ_PATH` run one again.
 */
import fc from "fast-check";
import { afterAll, expect, test, vi } from "vitest";
import { HOUR } from "../../core/definitions/context.ts";
import { fromStored } from "../../core/engine/values.ts";
import { type Death, type Plan, type TrialEnd, trial, type World } from "../simulation/trial.ts";
import { program } from "./arbitrary.ts";
import { answerTo, callsInOrder, jobOf, modelInOrder, stored } from "./model.ts";
import { breaksAlone, breaksRules, draws, isTimed, mix, namesAreSure, type ProgramTree, runTree } from "./program.ts";
import { Traced } from "./traced.ts";

const RUNS = Number(process.env.FUZZ_RUNS ?? 200);
const SEED = process.env.FUZZ_SEED === undefined ? {} : { seed: Number(process.env.FUZZ_SEED) };
const PATH = process.env.FUZZ_PATH === undefined ? {} : { path: process.env.FUZZ_PATH };

/** How many timings without deaths, and how many runs with deaths, each program gets. */
const TIMINGS = 3;
const DEATHS = 9;

interface Run extends TrialEnd {
  /** The outcomes in the order in which they reached the function in the last pass. */
  order: string[];
  plan: string;
}

function randomOf(seed: number): () => number {
  let state = mix(seed, "random");
  return () => {
    state = mix(state, 1);
    return state / 2 ** 32;
  };
}

/** Timing 0 is steady: everything takes as long as it says, and requests no time. Others are made of `seed`. */
async function runOf(tree: ProgramTree, seed: number, timing: number, deaths: Death[], isWarm: boolean): Promise<Run> {
  const random = randomOf(mix(seed, timing));
  const isSteady = timing === 0;
  vi.spyOn(Math, "random").mockImplementation(random);
  const order: string[][] = [];
  const world: World = {
    answer: (name) => ({ after: isSteady ? 60 : Math.floor(random() * 300), answer: answerTo(name) }),
    nameOf: async ({ kind }) => kind,
    job: (name) => {
      const settled = jobOf(name);
      const after = isSteady ? 30 : Math.floor(random() * 200);
      return "error" in settled ? { after, error: fromStored(settled.error) } : { after, result: settled.value };
    },
  };
  const latency = isSteady ? {} : { latency: () => Math.floor(random() * 4) * Math.floor(random() * 4) };
  const plan: Plan = { deaths, isWarm, hasNews: timing % 3 !== 2, ...latency };
  const ended = await trial(
    (clock) => {
      const mine: string[] = [];
      order.push(mine);
      let runs = 0;
      const speed = () => (isSteady ? 1 : [0.1, 0.5, 1, 3][Math.floor(random() * 4)]) as number;
      const machine = { pause: (ms: number) => clock.pause(ms), now: clock.now, speed };
      // Run again within a pass, to be verified, it says nothing new.
      return async (ctx) => runTree(tree, new Traced(ctx as never, runs++ === 0 ? mine : []), machine);
    },
    {},
    world,
    plan,
  );
  const { deaths: _, ...rest } = plan;
  return { ...ended, order: order.at(-1) ?? [], plan: JSON.stringify({ seed, timing, deaths, ...rest }) };
}

const isRefused = ({ outcome, error }: Run) => outcome === "failed" && error?.name === "NondeterminismError";

/** Compares what came of a run with what the model makes of the same order of outcomes. */
async function compare(tree: ProgramTree, run: Run): Promise<void> {
  const model = await modelInOrder(tree, run.order);
  const { end } = model;
  const about = `${run.plan}\n${JSON.stringify(run.records)}\n${run.order.join(" ")}`;
  if (model.problem) throw new Error(`${model.problem}: ${about}`);
  if (!end) throw new Error(`the model has not ended: ${about}`);
  if ("error" in end) {
    const { name, message } = end.error;
    expect([run.outcome, run.error], about).toEqual(["failed", { name, message }]);
  } else expect([run.outcome, stored(run.value)], about).toEqual(["complete", end.value]);
  const recorded = run.records.filter(({ event }) => ["step", "start", "until", "race", "emit"].includes(event.kind));
  const known = new Set(run.order);
  const paths = recorded.map(({ event }) => event.op).filter((path) => known.has(path));
  const outcomes = new Set(paths);
  expect(
    run.order.filter((path) => outcomes.has(path)),
    about,
  ).toEqual(paths);
  for (const { event } of recorded) {
    const settled = event.kind === "step" ? model.steps.get(event.op) : undefined;
    if (!settled || event.kind !== "step") continue;
    expect(event.error ? { error: event.error } : { value: event.value }, `${event.op}: ${about}`).toEqual(settled);
  }
}

async function prove(tree: ProgramTree, seed: number): Promise<void> {
  const random = randomOf(seed);
  const { root } = tree;
  const runs: Run[] = [];
  for (let timing = 0; timing < TIMINGS; timing++) runs.push(await runOf(tree, seed, timing, [], timing % 2 === 0));
  const most = Math.max(...runs.map(({ requests }) => requests));
  for (let i = 0; i < DEATHS; i++) {
    const how = (["before", "after", "alone"] as const)[i % 3] as Death["how"];
    const deaths = [{ at: 1 + Math.floor(random() * most), how }];
    if (random() < 0.3) deaths.push({ at: 1 + Math.floor(random() * 2 * most), how: "before" });
    runs.push(await runOf(tree, seed, i % 4, deaths, random() < 0.5));
  }
  for (const each of runs) {
    if (each.outcome === "blocked" || isRefused(each)) {
      const mayBe = breaksRules(root) || !namesAreSure(root);
      if (each.outcome === "blocked" && breaksAlone(root) === breaksRules(root)) {
        throw new Error(`blocked: ${each.error?.message}\n${each.plan}\n${JSON.stringify(each.records)}`);
      }
      if (!mayBe) throw new Error(`refused: ${each.error?.message}\n${each.plan}\n${JSON.stringify(each.records)}`);
    } else if (!tree.shares || breaksAlone(root) === breaksRules(root)) await compare(tree, each);
  }
  if (isTimed(root)) return;
  const verdicts = new Set(runs.map(isRefused));
  if (breaksAlone(root)) expect([...verdicts], "it breaks a rule").toEqual([true]);
  if (breaksRules(root)) return;
  const orders = new Set<string>();
  for (let i = 0; i < 6; i++) orders.add(JSON.stringify([...(await callsInOrder(tree, random))].sort()));
  if (orders.size > 1) expect([...verdicts], "its names are unsure").toEqual([true]);
  if (!tree.shares && !draws(root) && !verdicts.has(true)) {
    const values = new Set(runs.map(({ value }) => JSON.stringify(value)));
    expect([...values], "what is fast decides nothing").toHaveLength(1);
  }
}

afterAll(() => vi.restoreAllMocks());

test("no death, and no timing, changes what comes of a durable function", { timeout: 10 * HOUR }, async () => {
  const property = fc.asyncProperty(program, fc.nat(), prove);
  // Programs that are large or many are not made small: that takes longer than to read them.
  await fc.assert(property, { numRuns: RUNS, ...SEED, ...PATH, endOnFailure: RUNS >= 1_000 });
});
