/** The test that every durable function should have: it is killed and replayed at every point, and must end the same. */
import * as z from "zod";
import {
  type Answer,
  NonRetryableError,
  type Question,
  type Startable,
  StepInterrupted,
} from "../core/author/context.ts";
import { type DurableFunction, type Implementation, nextArgs } from "../core/author/implement.ts";
import { type Job, NotStarted } from "../core/author/job.ts";
import { problemsOf } from "../core/author/parsed.ts";
import { fromStored } from "../core/author/values.ts";
import { nameIn } from "../core/engine/replay/commands/commands.ts";
import type { Runnable } from "../core/engine/runtime.ts";
import { AnswerEntry } from "../core/jobs/feed/progress-feed.ts";
import { Inputs } from "./inputs.ts";
import { BEGIN } from "./simulation/test-clock.ts";
import { type Plan, type TrialEnd, trial, type World } from "./simulation/trial.ts";

/**
 * The world around the function that {@link replayed} runs. A run of the function makes at most 1,000 calls of `ctx`: more are
 * reported as an endless loop.
 *
 * @example
 * const options: ReplayedOptions = { answers: { "go on": { yes: true } }, jobs: { report: "all is well" }, runs: 100 };
 */
export interface ReplayedOptions {
  /** `ctx.env`, or the variables from which the implementation's schema makes it. */
  env?: unknown;
  /**
   * Answers to questions, by the names of the questions: the content of an accepted form, or the whole answer. Other
   * questions are never answered.
   */
  answers?: Record<string, Record<string, unknown> | Answer>;
  /** What outside systems send to callbacks, by the names of the callbacks. Others are never called back. */
  callbacks?: Record<string, unknown>;
  /** Outcomes of other jobs, by their kinds or names: a result, or an `Error` for a job that fails. */
  jobs?: Record<string, unknown>;
  /** How long the job may take, in milliseconds. Default: as its definition says and an hour more; 10 years without one. */
  deadline?: number;
  /** The largest number of runs in which the function is killed. If there are more points, some are skipped. Default: 1,000. */
  runs?: number;
}

/**
 * The common outcome of all runs of {@link replayed}.
 *
 * @example
 * const often = ({ runs }: Replayed<unknown>) => runs > 10;
 */
export interface Replayed<Result> {
  result: Result;
  /** The number of runs to the function's end. Each was killed at a different point. */
  runs: number;
}

/**
 * The function ends differently if its worker dies on the way. The message says at which point, and how.
 *
 * @example
 * let turn = 0;
 * const unsteady = async () => (turn += 1); // differs the second time, because it is not in a step
 * const why = await replayed(unsteady, {}).catch((error) => error instanceof EndsDiffer && error.message);
 */
export class EndsDiffer extends Error {
  override name = "EndsDiffer";
}

/** How long answers and other jobs take, in milliseconds of the simulated clock. */
const AN_ANSWER = 60_000;
const A_JOB = 10_000;

/**
 * Runs a durable function on a simulated server in this process, whose clock jumps over sleeps and pauses: once without
 * any replay, once undisturbed, and then killed before and after each request to the server (each record, each suspension,
 * each wake-up) and continued by a worker that remembers the job and by one that does not.
 *
 * Returns the result that all runs have in common. Throws the error that all runs have in common, a `NondeterminismError` if the
 * function breaks a rule, and an {@link EndsDiffer} with the point of the death if runs end differently. Each run
 * executes the steps: give them stand-ins, also those that return the time or a new id, or use `ctx.now()` and `ctx.uuid()`. A
 * step with `atMostOnce` fails if a death left its outcome unknown; runs in which the same steps fail this way must end the same.
 *
 * @example const { result } = await replayed(waitForSiteRun, { url }, { answers: { "go on": { yes: true } } });
 */
export async function replayed<Args, Result>(
  fn: DurableFunction<Args, Result, never> | Implementation,
  args: Args,
  options: ReplayedOptions = {},
): Promise<Replayed<Result>> {
  const ofJob = typeof fn === "function" ? {} : worldOfJob(fn, args, options);
  let misfit: string | undefined;
  const world = () => ({ ...worldOf(options, (problem) => (misfit ??= problem)), ...ofJob });
  const code = typeof fn === "function" ? fn : fn.versionOf(fn.job.version);
  const inputs = () => {
    const all = new Inputs(code as object);
    return (step: string, stepFn: object) => all.differ(step, stepFn);
  };
  const run = (plan: Plan) =>
    trial(() => code as Runnable, args, { ...world(), ...(plan.deaths.length === 0 && { inputs }) }, plan);
  // The outcome that an author expects of code that runs once.
  const awake = await run({ deaths: [], isWarm: true, staysAwake: true });
  if (misfit !== undefined) throw new Error(misfit);
  if (awake.error?.name === "NondeterminismError") throw thrown(awake, options);
  const first = await run({ deaths: [], isWarm: true });
  if (endOf(awake) !== endOf(first)) throw new EndsDiffer(explain(awake, first, { deaths: [], isWarm: false }));
  const plans = plansFor(first.requests, options.runs ?? 1_000);
  const ends = new Map([[interrupted(first), first]]);
  for (const plan of plans) {
    const other = await run(plan);
    const alike = ends.get(interrupted(other)) ?? other;
    ends.set(interrupted(other), alike);
    if (endOf(other) !== endOf(alike)) throw new EndsDiffer(explain(alike, other, plan));
  }
  if (first.outcome !== "complete") throw thrown(first, options);
  return { result: first.value as Result, runs: plans.length + 1 };
}

function plansFor(requests: number, most: number): Plan[] {
  const plans: Plan[] = [{ deaths: [], isWarm: false }];
  for (let at = 1; at <= requests; at++) {
    for (const how of ["before", "after", "alone"] as const) {
      for (const isWarm of [true, false]) plans.push({ deaths: [{ at, how }], isWarm });
    }
  }
  const each = Math.max(plans.length / most, 1);
  return Array.from({ length: Math.floor(plans.length / each) }, (_, i) => plans[Math.floor(i * each)] as Plan);
}

/** The parts of the world that a definition sets, as in a worker. */
function worldOfJob({ job, env }: Implementation, args: unknown, options: ReplayedOptions): World {
  const { errors, budget, events } = job;
  const variables = options.env ?? {};
  const deadline = options.deadline ?? deadlineOf(job, args);
  return {
    // The option may also be the schema's output, which the schema need not accept.
    env: env?.safeParse(variables).data ?? variables,
    nextArgs: (next) => nextArgs(job, next),
    ...(deadline !== undefined && { deadline }),
    ...{ errors, budget, events },
  };
}

/** The time that deaths and answers take on the simulated clock, and that a short deadline therefore gets in addition. */
const SLACK = 3_600_000;

/**
 * How long a job may take by its definition. Undefined if the deadline is over when the simulated clock begins, which an author
 * cannot know, and for arguments that do not fit, which the run reports.
 */
function deadlineOf(job: Job, args: unknown): number | undefined {
  try {
    return job.deadline(args, BEGIN) - BEGIN + SLACK;
  } catch {
    return undefined;
  }
}

function worldOf(
  { env, answers = {}, callbacks = {}, jobs = {}, deadline }: ReplayedOptions,
  refuse: (problem: string) => void,
): World {
  const outcomes = new Map<string, unknown>();
  return {
    env,
    isReal: true,
    ...(deadline !== undefined && { deadline }),
    jobs: Object.keys(jobs),
    answer(path, question) {
      const given = answers[path] ?? answers[nameIn(path)];
      if (given === undefined) return undefined;
      const answer: AnswerEntry = AnswerEntry.safeParse(given).data ?? { action: "accept", content: given };
      const problem = answer.action === "accept" && question && misfitOf(question, answer.content);
      if (problem) return void refuse(`replayed: the answer to "${path}" does not fit the question: ${problem}`);
      return { after: AN_ANSWER, answer };
    },
    callback(path) {
      const key = path in callbacks ? path : nameIn(path);
      return key in callbacks ? { after: AN_ANSWER, value: callbacks[key] } : undefined;
    },
    async nameOf(job, given) {
      const { kind, args, result, name } = job as Startable<unknown> & { name?: (args: unknown) => Promise<string> };
      try {
        const parsed = args.parse(given);
        const own = typeof name === "function" ? await name(parsed) : kind;
        if (!(own in jobs) && !(kind in jobs)) {
          throw new NonRetryableError(
            `replayed: the job ${kind} has no outcome. Give it one: { jobs: { ${kind}: … } }`,
          );
        }
        const outcome = own in jobs ? jobs[own] : jobs[kind];
        const problem = outcome instanceof Error || !result ? undefined : problemWith(result, outcome);
        outcomes.set(own, problem === undefined ? outcome : unfitOutcome(kind, problem));
        return own;
      } catch (error) {
        if (!(error instanceof NotStarted || error instanceof z.ZodError)) throw error;
        throw new NonRetryableError(`${kind} was not started: ${error.message}`);
      }
    },
    job(name) {
      const outcome = outcomes.has(name) ? outcomes.get(name) : jobs[name];
      return outcome instanceof Error ? { after: A_JOB, error: outcome } : { after: A_JOB, result: outcome };
    },
  };
}

/** The failure of a job whose result its definition would refuse. */
const unfitOutcome = (kind: string, problem: string) =>
  new Error(`replayed: the outcome of the job ${kind} does not fit its result: ${problem}`);

/** Why the edge would refuse the content of an answer. A form that cannot be checked takes any. */
function misfitOf({ requestedSchema }: Question, content: unknown): string | undefined {
  let form: z.ZodType;
  try {
    form = z.fromJSONSchema(requestedSchema as Parameters<typeof z.fromJSONSchema>[0]);
  } catch {
    return undefined;
  }
  return problemWith(form, content);
}

function problemWith(schema: { parse(value: unknown): unknown }, value: unknown): string | undefined {
  try {
    schema.parse(value);
    return undefined;
  } catch (error) {
    if (error instanceof z.ZodError) return problemsOf(error);
    throw error;
  }
}

/** The `atMostOnce` steps whose outcome a death has left unknown, with the errors that the function got. */
const interruptions = ({ records }: TrialEnd): { step: string; message: string }[] =>
  records.flatMap(({ event }) => {
    const error = event.kind === "step" && event.error && fromStored(event.error);
    return error instanceof StepInterrupted ? [{ step: event.op, message: error.message }] : [];
  });

const interrupted = (end: TrialEnd): string =>
  JSON.stringify(
    interruptions(end)
      .map(({ step }) => step)
      .sort(),
  );

/** The end of a run, without the times at which interrupted steps were begun. */
function endOf(end: TrialEnd): string {
  const { outcome, value, error } = end;
  const text = JSON.stringify(outcome === "complete" ? { value } : { outcome, ...error });
  return interruptions(end).reduce((rest, { message }) => rest.replaceAll(message, ""), text);
}

function inWords({ outcome, value, error }: TrialEnd): string {
  if (outcome === "complete") return `returned ${JSON.stringify(value)}`;
  return outcome === "blocked" ? `could not go on (${error?.message})` : `threw ${error?.name}: ${error?.message}`;
}

function explain(first: TrialEnd, other: TrialEnd, { deaths, isWarm }: Plan): string {
  const [death] = deaths;
  const where = {
    before: "before it arrived",
    after: "before its answer came back",
    alone: "which got lost, while the requests sent with it arrived",
  };
  const when = death
    ? `With its worker killed at request ${death.at} (${other.points[death.at - 1]}), ${where[death.how]}, and the job continued by another${isWarm ? "" : " each time"}`
    : "Run by another worker after each sleep";
  return `${when}, the function ${inWords(other)}. ${interrupted(first) === "[]" ? "Undisturbed" : "Killed elsewhere"} it ${inWords(first)}. ${differing(first, other) ?? OUTSIDE}`;
}

const OUTSIDE =
  "Put everything that may differ the second time (a request, a random number, the time of day) into a step, change nothing outside of a step in it, and await only what ctx returns";

/** The advice for the first step whose own result differs; undefined if all steps returned the same. */
function differing(first: TrialEnd, other: TrialEnd): string | undefined {
  const before = stepsOf(first);
  for (const [step, value] of stepsOf(other)) {
    const known = before.get(step);
    if (known === undefined || known === value) continue;
    return `The step ${step} itself returned ${value} in one run and ${known} in the other: each run executes it. Give it a stand-in, or use ctx.now() or ctx.uuid()`;
  }
  return undefined;
}

/** The values that steps returned, as JSON. */
function stepsOf({ runs }: TrialEnd): Map<string, string> {
  const steps = new Map<string, string>();
  for (const [i, { records }] of runs.entries()) {
    for (const { event } of records) {
      if (event.kind !== "step" || event.error) continue;
      steps.set(`"${event.op}"${i > 0 ? ` of run ${i + 1}` : ""}`, JSON.stringify(event.value) ?? "undefined");
    }
  }
  return steps;
}

function thrown({ error, isTimedOut }: TrialEnd, { answers = {} }: ReplayedOptions): Error {
  const { name = "Error", message = "" } = error ?? {};
  const known = Object.keys(answers).join(", ") || "none";
  const words = isTimedOut
    ? `the job timed out: is its deadline too early, or is there a question that nobody answers? (answers: ${known})`
    : message;
  const thrown = new Error(words);
  Object.defineProperty(thrown, "name", { value: name, configurable: true, writable: true });
  return thrown;
}
