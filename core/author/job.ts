import type * as z from "zod";
import { bytesToBase64Url } from "../resonate/base64.ts";
import { escapeId, mayBeName, oneForm } from "../resonate/ids.ts";
import { digestOf } from "../resonate/sha256.ts";
import { type Budgets, DAY, type ErrorClass, MINUTE } from "./context.ts";
import type { EventDefinition } from "./event.ts";
import type { View } from "./view.ts";

/** A job was not started, and nothing else was done; the message gives the caller the reason. */
export class NotStarted extends Error {}

const DEFAULT_DEADLINE = DAY;
const DEFAULT_CLEANUP = MINUTE;

/** The longest job name, in UTF-16 code units: it is part of an id on the Resonate server, and models repeat it. */
export const MAX_JOB_NAME = 500;

/**
 * A zod schema. `jsonSchema` makes one from plain JSON Schema.
 *
 * @example
 * const typed: Schema<{ day: string }> = z.object({ day: z.iso.date() });
 */
export type Schema<T> = z.ZodType<T>;

/**
 * JSON Schema, draft 2020-12 or 7.
 *
 * @example
 * const schema: JsonSchema = { type: "object", properties: { litres: { type: "number", minimum: 0 } } };
 */
export type JsonSchema = { readonly type?: string } & { readonly [keyword: string]: unknown };

/**
 * The options of a kind of durable work.
 *
 * @example
 * const options: JobOptions<{ day: string }, string> = {
 *   kind: "daily",
 *   args: z.object({ day: z.iso.date() }),
 *   result: z.string(),
 *   id: ({ day }) => day,
 *   deadline: HOUR,
 *   freshFor: DAY,
 * };
 * export const daily = defineJob(options);
 */
export interface JobOptions<Args, Result = unknown> {
  /** Unique among all kinds: letters, digits and `_`. */
  kind: string;
  /** The prefix of each job's name. Default: the kind and `_`. No other definition's prefix may begin with it. */
  prefix?: string;
  /** The arguments as they are stored: JSON, the same for two requests for the same work. */
  args: Schema<Args>;
  /** The function's result, which is checked before it is stored. */
  result?: Schema<Result>;
  /**
   * The readable id of a job among those of its kind: the job's name is the prefix and this id. Starts with the same id are
   * one job. Characters that have a meaning in names are escaped. For long arguments see {@link hashed}.
   */
  id(args: Args): string | number | Promise<string | number>;
  /** How long a job may take in milliseconds, or when a job started at `now` must end (both since the epoch). Default: a day. */
  deadline?: number | ((args: Args, now: number) => number);
  /**
   * When a job is expected to end, in milliseconds since the epoch, if its arguments tell. Its progress is not read before
   * then, so kinds of jobs that ask questions must not have it.
   */
  expectedAt?(args: Args): number;
  /**
   * Whether callers share the jobs, and so may see their arguments and results. Otherwise a job belongs to the caller who
   * started it, and does not exist for others. Default: false.
   */
  shared?: boolean;
  /**
   * For how many milliseconds a result is fresh: a start after that runs the job again, as its next generation. May depend
   * on the result. Default: forever.
   */
  freshFor?: number | ((result: Result, args: Args) => number | undefined);
  /**
   * The retention of jobs that have ended, in milliseconds, in place of the deployment's (`RETENTION_DAYS`). After that the
   * result is gone, and the job can be started again.
   */
  keepFor?: number | "forever";
  /**
   * Whether the same call may restart a job that ended without a result. `error` is that of a failed job: its message and, if the
   * function's error had one, its `code`. Default: always.
   */
  restarts?(error: (Error & { readonly code?: string }) | undefined, args: Args): boolean;
  /**
   * How a job restarts after it failed, was cancelled or timed out. By default it begins from the start, like any new job.
   * `resume`: it does not repeat the steps that the previous attempt finished, if it has the same arguments and version, and
   * if nothing was recorded after the first failure or callback that reached the function. For functions that undo nothing.
   */
  onRestart?: "resume";
  /**
   * How long the clean-up may take in milliseconds: the work of the function in `catch` and `finally` after `JobCancelled`,
   * from its first execution on, or after `DeadlineExceeded`, from the deadline on. Default: a minute.
   */
  cleanup?: { for: number };
  /**
   * The answer to a start of a job that exists with other arguments, which `id` leaves out: the job with a `note` that says
   * so (the default), a refusal, or the job without a note (`accept`).
   */
  otherArguments?: "note" | "refuse" | "accept";
  /** Whether the result is the tool's whole answer in the protocol's form (with `content`), and not a value in one. */
  returnsToolResult?: boolean;
  /** Whether hosts may show apps that such an answer names. Default: false. */
  apps?: boolean;
  /**
   * How many jobs this one counts as, towards a caller's quota and its requests in a minute: a job that starts others should
   * count for those as well. Default: 1.
   */
  counts?(args: Args): number;
  /** Raise it when the function changes in a way that running jobs would not survive; see `implement`. Default: 1. */
  version?: number;
  /** `container`: the function needs more than a Worker offers (time, memory, Node). Default: `anywhere`. */
  runs?: "anywhere" | "container";
  /**
   * Classes of errors that keep their class after a step, for `instanceof`, and their own fields if JSON can hold them.
   * Their constructors are not called again. Every other error comes back as an `Error` with its name, message, `code`,
   * `status` and `cause`; `NonRetryableError`, `RetryableError` and `TimeoutError` always keep their class.
   * Temporal: the `type` and `details` of an `ApplicationFailure`; Restate: a `TerminalError` and its metadata.
   */
  errors?: readonly ErrorClass[];
  /**
   * How many jobs of the kind with the same key run at once, on all workers together, in the order of their starts:
   * `{ key: ({ customer }) => customer, limit: 1 }`. The others sleep and hold no worker. A job keeps its turn until it ends,
   * even if its worker dies. All callers share the keys. Temporal has no counterpart but a Workflow Id per customer with
   * Signals; Restate: a Virtual Object, with `limit: 1`.
   */
  concurrency?: { key(args: Args): string | number; limit: number };
  /** The limits of what a job may spend, by name; see `ctx.spend`. Default: nothing is counted. */
  budget?: Budgets;
  /** The types of events that jobs send with `ctx.event`. Default: none. */
  events?: readonly EventDefinition[];
  /** The labels of a job, in addition to its caller's: up to 8 texts of 1 to 64 characters. Default: none. */
  labels?(args: Args): readonly string[];
  /** How jobs are shown to people. Default: their results as a tree. */
  view?: View;
  /**
   * The worker group that runs the jobs. Its workers have this name as `WORKER_GROUP`, or are written in another language.
   * Never `default`. Default: the deployment's (`RESONATE_GROUP`).
   */
  group?: string;
}

/**
 * A kind of durable work. Both the tool that starts it and the durable function that runs it import the definition.
 *
 * @example
 * const job: Job<{ day: string }> = report;
 * const name = await job.name({ day: "2026-11-21" }); // "report_2026-11-21"
 */
export interface Job<Args = unknown, Result = unknown> {
  readonly kind: string;
  readonly prefix: string;
  readonly args: z.ZodType<Args>;
  readonly result: z.ZodType<Result> | undefined;
  readonly version: number;
  readonly shared: boolean;
  /** `edge`: the edge does its work, and no worker is offered it. */
  readonly runs: "anywhere" | "container" | "edge";
  /** The worker group that runs the jobs; undefined for the deployment's. */
  readonly group: string | undefined;
  readonly keepFor: number | "forever" | undefined;
  readonly errors?: readonly ErrorClass[];
  readonly budget?: Budgets;
  readonly events?: readonly EventDefinition[];
  readonly concurrency?: { key(args: Args): string | number; readonly limit: number };
  /**
   * The job name, which agents see and pass back. It never contains `:` or `~`, which separate the parts of promise ids.
   */
  name(args: Args): Promise<string>;
  /** Whether `name`, without its generation, may be of this kind. */
  owns(name: string): boolean;
  /** When the promise times out, in milliseconds since the epoch, for a job started at `now`. */
  deadline(args: Args, now: number): number;
  /** `args` are undefined, in `restarts` too, if those that are stored cannot be decoded. */
  expectedAt?(args: Args | undefined): number | undefined;
  /** How many jobs this one counts as towards a caller's limits. */
  counts(args: Args): number;
  labels?(args: Args): readonly string[];
  /** For how many milliseconds `result` is fresh; undefined: forever. */
  freshFor(result: unknown, args?: Args): number | undefined;
  /** Whether the same call may restart a job that ended without a result. */
  restarts(error: (Error & { readonly code?: string }) | undefined, args: Args | undefined): boolean;
  readonly onRestart: "resume" | undefined;
  readonly otherArguments: "note" | "refuse" | "accept";
  /** How long the clean-up of a cancelled job may take, in milliseconds. */
  readonly cleanupTime: number;
  /** Whether the result is the tool's whole answer in the protocol's form. */
  readonly returnsToolResult: boolean;
  /** Whether hosts may show apps that such an answer names. */
  readonly apps: boolean;
  /** How jobs are shown to people. */
  readonly view?: View;
}

/** @throws {Error} for an invalid kind, prefix, version, group, time, concurrency or budget */
function checkOptions<Args, Result>(options: JobOptions<Args, Result>): void {
  const { kind, prefix = `${kind}_`, version = 1, group, deadline, freshFor, keepFor, cleanup } = options;
  if (!/^[A-Za-z]\w{0,63}$/.test(kind)) {
    throw new Error(
      `A job's kind is up to 64 letters, digits and "_", beginning with a letter, not ${JSON.stringify(kind)}.`,
    );
  }
  if (!/^[\w.-]{1,64}$/.test(prefix)) {
    throw new Error(`${kind}: a prefix is up to 64 letters, digits, "_", "-" and ".", not ${JSON.stringify(prefix)}.`);
  }
  if (!Number.isSafeInteger(version) || version < 1) throw new Error(`${kind}: a version is a whole number from 1 on.`);
  if (group !== undefined && !/^(?!default$)[\w.-]+$/.test(group)) {
    throw new Error(`${kind}: a group is letters, digits, "_", "-" and ".", not ${JSON.stringify(group)}.`);
  }
  for (const span of [deadline, freshFor, keepFor === "forever" ? undefined : keepFor, cleanup?.for]) {
    if (span !== undefined && typeof span !== "function" && !Number.isFinite(span)) {
      throw new Error(`${kind}: ${span} is not a number of milliseconds.`);
    }
  }
  const { concurrency: { limit: atOnce } = { limit: 1 } } = options;
  if (!Number.isSafeInteger(atOnce) || atOnce < 1) throw new Error(`${kind}: a concurrency is a limit from 1 on.`);
  for (const [of, { limit }] of Object.entries(options.budget ?? {})) {
    if (!(Number.isFinite(limit) && limit >= 0))
      throw new Error(`${kind}: a budget of ${of} is 0 or more, not ${limit}.`);
  }
}

/**
 * Defines a kind of durable work.
 *
 * @throws {Error} for an invalid kind, prefix, version, group, time, concurrency or budget
 *
 * @example
 * export const report = defineJob({ kind: "report", args: z.object({ day: z.iso.date() }), id: ({ day }) => day });
 */
export function defineJob<Args, Result = unknown>(options: JobOptions<Args, Result>): Job<Args, Result> {
  const { kind, prefix = `${kind}_`, deadline = DEFAULT_DEADLINE, shared = false, runs = "anywhere" } = options;
  const {
    version = 1,
    freshFor,
    expectedAt,
    counts,
    restarts = () => true,
    returnsToolResult = false,
    apps = false,
    group,
  } = options;
  checkOptions(options);
  return {
    kind,
    prefix,
    args: options.args,
    result: options.result,
    version,
    shared,
    runs,
    group,
    keepFor: options.keepFor,
    async name(args) {
      const id = await options.id?.(args);
      if (typeof id === "string" ? id === "" : !Number.isFinite(id)) {
        throw new NotStarted(`${kind}: its id is ${JSON.stringify(id)}, neither a text nor a number`);
      }
      const name = oneForm(prefix + escapeId(oneForm(String(id))));
      if (name.length > MAX_JOB_NAME) {
        throw new NotStarted(
          `these arguments make a name of ${name.length} characters, up to ${MAX_JOB_NAME} are possible: shorten them`,
        );
      }
      return name;
    },
    owns: (name) =>
      name.startsWith(prefix) && name.length > prefix.length && name.length <= MAX_JOB_NAME && mayBeName(name),
    deadline: (args, now) => {
      const at = typeof deadline === "number" ? now + deadline : deadline(args, now);
      if (at > now && at < Infinity) return at;
      throw new NotStarted(`the deadline of this ${kind} would be ${at - now} ms from now`);
    },
    ...(expectedAt && { expectedAt: (args) => (args === undefined ? undefined : expectedAt(args)) }),
    counts: (args) => counts?.(args) ?? 1,
    freshFor: (result, args) => (typeof freshFor === "function" ? freshFor(result as Result, args as Args) : freshFor),
    restarts: (error, args) => args === undefined || restarts(error, args),
    onRestart: options.onRestart,
    otherArguments: options.otherArguments ?? "note",
    cleanupTime: options.cleanup?.for ?? DEFAULT_CLEANUP,
    returnsToolResult,
    apps,
    ...(options.view && { view: options.view }),
    ...(options.errors && { errors: options.errors }),
    ...(options.budget && { budget: options.budget }),
    ...(options.events && { events: options.events }),
    ...(options.labels && { labels: options.labels }),
    ...(options.concurrency && { concurrency: options.concurrency }),
  };
}

/** The JSON Schema that a schema was made from: see `json-schema.ts`. */
export const RAW_SCHEMAS = new WeakMap<z.ZodType, JsonSchema>();

/**
 * A text of 22 characters that stands for a value in an id; different values have different texts.
 *
 * @example const id = `${new URL(url).hostname}_${await hashed([url, { depth: 2 }])}`;
 */
export async function hashed(value: unknown): Promise<string> {
  return bytesToBase64Url(await digestOf(JSON.stringify(value) ?? "")).slice(0, 22);
}

/** The conflicts between definitions, in words; empty where there is none. */
export function conflicts(jobs: readonly Job[]): string[] {
  return jobs.flatMap((job, i) =>
    jobs.slice(0, i).flatMap((otherJob) => {
      if (otherJob.kind === job.kind) return [`Two jobs are of the kind ${job.kind}.`];
      const [short, long] = job.prefix.length < otherJob.prefix.length ? [job, otherJob] : [otherJob, job];
      if (!long.prefix.startsWith(short.prefix)) return [];
      return [
        `A name that begins with ${long.prefix} could be of the kind ${long.kind} or of the kind ${short.kind}, whose names begin with ${short.prefix}. Give one of them another prefix.`,
      ];
    }),
  );
}

/** The tag of a job's promise that holds the id of the request that started it, for logs. */
export const REQUEST_TAG = "durable-mcp:request";

/** The tag of a job's promise that holds the version of its definition. */
export const VERSION_TAG = "durable-mcp:version";
