/** The test that every durable function should have: it is killed and replayed at every point, and must return the same. */
import type { DurableFunction, Implementation } from "../core/author/index.ts";
import type { Runnable } from "../core/engine/index.ts";
import { Inputs } from "./inputs.ts";
import { dependenciesOf, dependenciesOfJob, type ReplayOptions } from "./replay-options.ts";
import { difference, errorOf, outcomeOf, unknownOutcomes } from "./replay-report.ts";
import type { Plan } from "./simulation/plan.ts";
import { trial } from "./simulation/trial.ts";

/**
 * The common outcome of all runs of {@link replay}.
 *
 * @example
 * const often = ({ runs }: ReplayResult<unknown>) => runs > 10;
 */
export interface ReplayResult<Result> {
  result: Result;
  /** The number of runs to the function's end. Each was killed at a different point. */
  runs: number;
}

/**
 * The function has another outcome if its worker dies on the way. The message says at which point, and which outcome.
 *
 * @example
 * let turn = 0;
 * const unsteady = async () => (turn += 1); // differs the second time, because it is not in a step
 * const reason = await replay(unsteady, {}).catch((error) => error instanceof OutcomesDiffer && error.message);
 */
export class OutcomesDiffer extends Error {
  override name = "OutcomesDiffer";
}

const MAX_RUNS = 1_000;

/**
 * Runs a durable function on a simulated server in this process, whose clock jumps over sleeps and pauses: once without
 * any replay, once undisturbed, and then killed before and after each request to the server (each record, each suspension,
 * each wake-up) and continued by a worker that remembers the job and by one that does not.
 *
 * Returns the result that all runs have in common. Throws the error that all runs have in common, a `NondeterminismError` if the
 * function breaks a rule, and an {@link OutcomesDiffer} with the point of the death if outcomes differ. Each run
 * executes the steps: give them stand-ins, also those that return the time or a new id, or use `ctx.now()` and `ctx.uuid()`. A
 * step with `atMostOnce` fails if a death left its outcome unknown; runs in which the same steps fail this way must have the same
 * outcome.
 *
 * `input` are the arguments as a caller passes them, and those of the function itself if it has no definition.
 *
 * @example const { result } = await replay(waitForSiteRun, { url }, { answers: { "go on": { yes: true } } });
 */
export async function replay<Args, Result>(
  fn: DurableFunction<Args, Result, never> | Implementation<Args, Result>,
  input: Args,
  options: ReplayOptions = {},
): Promise<ReplayResult<Result>> {
  const args = typeof fn === "function" ? input : await storedArgs(fn.job, input);
  const jobDependencies = typeof fn === "function" ? {} : dependenciesOfJob(fn, args, options);
  let invalidAnswer: string | undefined;
  const dependencies = () => ({
    ...dependenciesOf(options, (problem) => (invalidAnswer ??= problem)),
    ...jobDependencies,
  });
  const code = typeof fn === "function" ? fn : fn.versionOf(fn.job.version);
  const inputs = () => {
    const all = new Inputs(code as object);
    return (step: string, stepFn: object) => all.describeDifference(step, stepFn);
  };
  const run = (plan: Plan) =>
    trial(() => code as Runnable, args, { ...dependencies(), ...(plan.deaths.length === 0 && { inputs }) }, plan);
  // The outcome that an author expects of code that runs once.
  const awake = await run({ deaths: [], isWarm: true, staysAwake: true });
  if (invalidAnswer !== undefined) throw new Error(invalidAnswer);
  if (awake.error?.name === "NondeterminismError") throw errorOf(awake, options.answers);
  const first = await run({ deaths: [], isWarm: true });
  if (outcomeOf(awake) !== outcomeOf(first))
    throw new OutcomesDiffer(difference(awake, first, { deaths: [], isWarm: false }));
  const plans = plansFor(first.requests, options.runs ?? MAX_RUNS);
  /** The first of the runs that left the same outcomes of steps unknown. */
  const models = new Map([[unknownOutcomes(first), first]]);
  for (const plan of plans) {
    const otherTrial = await run(plan);
    const model = models.get(unknownOutcomes(otherTrial)) ?? otherTrial;
    models.set(unknownOutcomes(otherTrial), model);
    if (outcomeOf(otherTrial) !== outcomeOf(model)) throw new OutcomesDiffer(difference(model, otherTrial, plan));
  }
  if (first.outcome !== "complete") throw errorOf(first, options.answers);
  return { result: first.value as Result, runs: plans.length + 1 };
}

/** The arguments as a job stores them. Those that do not fit are left as they are: the run reports them. */
async function storedArgs({ args: schema }: Implementation["job"], input: unknown): Promise<unknown> {
  const { success, data } = await schema.safeParseAsync(input);
  return success ? JSON.parse(JSON.stringify(data)) : input;
}

/** At most `maxRuns` plans, evenly distributed over those that kill the worker in each way at each request. */
function plansFor(requests: number, maxRuns: number): Plan[] {
  const plans: Plan[] = [{ deaths: [], isWarm: false }];
  for (let at = 1; at <= requests; at++) {
    for (const how of ["before", "after", "alone"] as const) {
      for (const isWarm of [true, false]) plans.push({ deaths: [{ at, how }], isWarm });
    }
  }
  const step = Math.max(plans.length / maxRuns, 1);
  return Array.from({ length: Math.floor(plans.length / step) }, (_, i) => plans[Math.floor(i * step)] as Plan);
}
