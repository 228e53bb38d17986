/** The options of a replay, and what the function depends on by them and by its definition. */
import * as z from "zod";
import {
  type Answer,
  type Implementation,
  type Job,
  NonRetryableError,
  NotStarted,
  nextArgs,
  problemsOf,
  type Question,
  type Startable,
  type ChildJobOptions,
} from "../core/author/index.ts";
import { nameIn } from "../core/engine/index.ts";
import { AnswerEntry } from "../core/jobs/index.ts";
import { canonical } from "../core/resonate/index.ts";
import type { Dependencies } from "./simulation/plan.ts";
import { CLOCK_START } from "./simulation/test-clock.ts";

/**
 * What the function that `replay` runs depends on. A run of the function that makes more than `calls` calls of `ctx` is
 * reported as an endless loop.
 *
 * @example
 * const options: ReplayOptions = { answers: { "go on": { yes: true } }, jobs: { report: "all is well" }, runs: 100 };
 */
export interface ReplayOptions {
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
  /** How many calls of `ctx` a run of the function may make. Default: 1,000. A worker sets no limit. */
  calls?: number;
  /** The largest number of runs in which the function is killed. If there are more points, some are skipped. Default: 1,000. */
  runs?: number;
}

/** How long answers and other jobs take on the simulated clock. */
const ANSWER_DELAY_MS = 60_000;
const JOB_DURATION_MS = 10_000;

/** The time that deaths and answers take on the simulated clock, and by which a definition's deadline is therefore extended. */
const DEADLINE_EXTENSION_MS = 3_600_000;

/** The dependencies that a definition sets, as in a worker. */
export function dependenciesOfJob({ job, env }: Implementation, args: unknown, options: ReplayOptions): Dependencies {
  const { errors, budget, events } = job;
  const variables = options.env ?? {};
  const deadline = options.deadline ?? deadlineOf(job, args);
  return {
    // The option may also be the schema's output, which the schema need not accept.
    env: env?.safeParse(variables).data ?? variables,
    nextArgs: (next) => nextArgs(job, next),
    ...(deadline !== undefined && { deadline }),
    errors,
    budget,
    events,
  };
}

/**
 * How long a job may take by its definition. Undefined if the deadline is over when the simulated clock begins, which an author
 * cannot know, and for arguments that do not fit, which the run reports.
 */
function deadlineOf(job: Job, args: unknown): number | undefined {
  try {
    return job.deadline(args, CLOCK_START) - CLOCK_START + DEADLINE_EXTENSION_MS;
  } catch {
    return undefined;
  }
}

/** The dependencies that the options set. `refuse` is called with what is wrong with an answer. */
export function dependenciesOf(
  { env, answers = {}, callbacks = {}, jobs = {}, deadline, calls }: ReplayOptions,
  refuse: (problem: string) => void,
): Dependencies {
  const outcomes = new Map<string, unknown>();
  /** The arguments with which jobs were started, as JSON. */
  const argsOf = new Map<string, string>();
  return {
    env,
    isReal: true,
    ...(deadline !== undefined && { deadline }),
    ...(calls !== undefined && { maxCalls: calls }),
    jobs: Object.keys(jobs),
    answer(path, question) {
      const option = answers[path] ?? answers[nameIn(path)];
      if (option === undefined) return undefined;
      const answer: AnswerEntry = AnswerEntry.safeParse(option).data ?? { action: "accept", content: option };
      const problem = answer.action === "accept" && question && problemWithAnswer(question, answer.content);
      if (problem) return void refuse(`replay: the answer to "${path}" does not fit the question: ${problem}`);
      return { after: ANSWER_DELAY_MS, answer };
    },
    callback(path) {
      const key = path in callbacks ? path : nameIn(path);
      return key in callbacks ? { after: ANSWER_DELAY_MS, value: callbacks[key] } : undefined;
    },
    async nameOf(job, args, options) {
      const { name, outcome, started } = await startedJob(job as StartableJob, args, jobs);
      refuseOtherArgs(job as StartableJob, name, argsOf.get(name) ?? started, started, options);
      argsOf.set(name, argsOf.get(name) ?? started);
      outcomes.set(name, outcome);
      return name;
    },
    job(name) {
      const outcome = outcomes.has(name) ? outcomes.get(name) : jobs[name];
      return outcome instanceof Error
        ? { after: JOB_DURATION_MS, error: outcome }
        : { after: JOB_DURATION_MS, result: outcome };
    },
  };
}

type StartableJob = Startable<unknown> & Partial<Pick<Job, "name" | "otherArguments">>;

/** Refuses a start that finds a job with other arguments, as a worker does. @throws {NonRetryableError} */
function refuseOtherArgs(
  { kind, otherArguments }: StartableJob,
  name: string,
  before: string,
  started: string,
  { ifExists }: ChildJobOptions,
): void {
  if (before === started || ifExists === "join" || otherArguments === "accept") return;
  throw new NonRetryableError(
    `${kind} was not started: ${name} was started with other arguments: ${before}. It is not started for these`,
  );
}

/** The name of a job that the function starts, and its outcome. @throws {NonRetryableError} if a worker would not start it */
async function startedJob({ kind, args: schema, result, name: nameOf }: StartableJob, args: unknown, jobs: object) {
  try {
    const parsedArgs = schema.parse(args);
    const name = typeof nameOf === "function" ? await nameOf(parsedArgs) : kind;
    const options = jobs as Record<string, unknown>;
    if (!(name in options) && !(kind in options)) {
      throw new NonRetryableError(`replay: the job ${kind} has no outcome. Give it one: { jobs: { ${kind}: … } }`);
    }
    const outcome = name in options ? options[name] : options[kind];
    const problem = outcome instanceof Error || !result ? undefined : problemWith(result, outcome);
    // Without a definition's `id`, the kind stands for all jobs of the kind.
    const started = typeof nameOf === "function" ? canonical(parsedArgs) : "";
    return { name, outcome: problem === undefined ? outcome : invalidOutcome(kind, problem), started };
  } catch (error) {
    if (!(error instanceof NotStarted || error instanceof z.ZodError)) throw error;
    throw new NonRetryableError(`${kind} was not started: ${error.message}`);
  }
}

/** The failure of a job whose result its definition would refuse. */
const invalidOutcome = (kind: string, problem: string) =>
  new Error(`replay: the outcome of the job ${kind} does not fit its result: ${problem}`);

/** Why the edge would refuse the content of an answer. A form that cannot be checked accepts any. */
function problemWithAnswer({ requestedSchema }: Question, content: unknown): string | undefined {
  let schema: z.ZodType;
  try {
    schema = z.fromJSONSchema(requestedSchema as Parameters<typeof z.fromJSONSchema>[0]);
  } catch {
    return undefined;
  }
  return problemWith(schema, content);
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
