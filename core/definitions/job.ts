import type * as z from "zod";
import { escapeId, mayBeName } from "../store/ids.ts";
import type { View } from "./view.ts";

/** A job was not started, and nothing else was done: why, in words for the caller. */
export class NotStarted extends Error {}

/** Milliseconds. */
const DAY = 24 * 60 * 60 * 1_000;

/** How long a job may take unless its definition says otherwise, in milliseconds. */
const DEFAULT_DEADLINE = DAY;

/** The longest job name, in UTF-16 code units: it is an id on the Resonate server and is said back by models. */
export const MAX_JOB_NAME = 500;

/**
 * A zod schema; plain JSON Schema is made one by `jsonSchema`.
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
 * What an author says of a kind of durable work.
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
  /** What the jobs are called among all kinds: letters, digits and `_`. */
  kind: string;
  /** What each job's name begins with. Default: the kind and `_`. No definition's prefix may begin another's. */
  prefix?: string;
  /** The arguments as they are stored. They must be JSON; two requests for the same work have the same. */
  args: Schema<Args>;
  /** What the function returns. Checked before it is stored. */
  result?: Schema<Result>;
  /**
   * What tells one job from another, for people to read: the job's name is the prefix and this. Starts with one id are one
   * job. Characters that have a meaning in names are escaped. Long arguments: see {@link hashed}.
   */
  id(args: Args): string | number | Promise<string | number>;
  /** How long a job may take: milliseconds, or the moment for a job started at `now`, both since the epoch. Default a day. */
  deadline?: number | ((args: Args, now: number) => number);
  /**
   * When it is expected to end, in milliseconds since the epoch, for a kind of work that knows. Such a job is taken to be
   * on its way until then: what it tells is looked at after that, so a kind of work that asks questions has none.
   */
  expectedAt?(args: Args): number;
  /**
   * Whether callers share the jobs: their arguments and results are nobody's secret. Otherwise a job belongs to the caller
   * who started it, and to others it does not exist. Default false.
   */
  shared?: boolean;
  /**
   * For how many milliseconds a result is fresh: asked for after that, the job runs again under its next name. May depend
   * on the result. Default: for ever.
   */
  freshFor?: number | ((result: Result, args: Args) => number | undefined);
  /**
   * For how many milliseconds a job that has ended is kept where old ones are removed (`RETENTION_DAYS`), in place of the
   * deployment's own time. Then its result is gone, and its name can be started anew.
   */
  keepFor?: number | "forever";
  /**
   * Whether a job that ended without a result may be started again by the same call. `reason` is the error's message, where
   * it failed. Default: always.
   */
  restarts?(reason: string | undefined, args: Args): boolean;
  /** Whether the result is the tool's whole answer, as the protocol has it (`content` and all), and not a value in one. */
  answers?: boolean;
  /**
   * For how many jobs one counts where a caller may start a number of them: one that starts others counts for those.
   * Default 1.
   */
  counts?(args: Args): number;
  /** Raised when the function changes in a way that running jobs would not survive; see `implement`. Default 1. */
  version?: number;
  /** `container`: the function needs more than a Worker offers (time, memory, Node), and is not run in one. */
  runs?: "anywhere" | "container";
  /** How its jobs are shown to people. Default: their results as a tree. */
  view?: View;
  /**
   * The worker group that runs the jobs, where that is not the deployment's (`RESONATE_GROUP`): its workers are started with
   * this name as `WORKER_GROUP`, or are written in another language. Never `default`.
   */
  group?: string;
}

/**
 * One kind of durable work, defined once: the tool that starts it and the durable function that runs it import this.
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
  readonly runs: "anywhere" | "container";
  /** The worker group that runs the jobs; undefined for the deployment's. */
  readonly group: string | undefined;
  readonly keepFor: number | "forever" | undefined;
  /**
   * The job name: what an agent sees and comes back with. The promise id is the deployment's namespace and this. Never
   * contains `:` (it separates a promise from its children) or `~` (it separates a name from its generation).
   */
  name(args: Args): Promise<string>;
  /** Whether `name`, without its generation, could have come from this job. */
  owns(name: string): boolean;
  /** When the promise times out, in milliseconds since the epoch, for a job started at `now`. */
  deadline(args: Args, now: number): number;
  expectedAt?(args: Args): number;
  /** For how many jobs one counts where a caller may start a number of them. */
  counts(args: Args): number;
  /** For how many milliseconds `result` is fresh; undefined for ever. */
  freshFor(result: unknown, args?: Args): number | undefined;
  /** Whether a job that ended without a result, with `reason` or none, may be started again by the same call. */
  restarts(reason: string | undefined, args: Args): boolean;
  /** Whether the result is the tool's whole answer, as the protocol has it. */
  readonly answers: boolean;
  /** How its jobs are shown to people. */
  readonly view?: View;
}

/**
 * Defines a kind of durable work.
 *
 * @throws {Error} for a kind, a prefix or a version that cannot be one
 *
 * @example
 * export const report = defineJob({ kind: "report", args: z.object({ day: z.iso.date() }), id: ({ day }) => day });
 */
export function defineJob<Args, Result = unknown>(options: JobOptions<Args, Result>): Job<Args, Result> {
  const { kind, prefix = `${kind}_`, deadline = DEFAULT_DEADLINE, shared = false, runs = "anywhere" } = options;
  const { version = 1, freshFor, expectedAt, counts, restarts = () => true, answers = false, group } = options;
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
  for (const span of [deadline, freshFor ?? 0]) {
    if (typeof span !== "function" && !Number.isFinite(span)) {
      throw new Error(`${kind}: ${span} is no number of milliseconds.`);
    }
  }
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
      const id = await options.id?.(args); // None is refused as one that is none.
      if (typeof id === "string" ? id === "" : !Number.isFinite(id)) {
        throw new NotStarted(`${kind}: its id is ${JSON.stringify(id)}, no text and no number`);
      }
      const name = prefix + escapeId(String(id));
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
    ...(expectedAt && { expectedAt }),
    counts: (args) => counts?.(args) ?? 1,
    freshFor: (result, args) => (typeof freshFor === "function" ? freshFor(result as Result, args as Args) : freshFor),
    restarts: (reason, args) => restarts(reason, args),
    answers,
    ...(options.view && { view: options.view }),
  };
}

/** The JSON Schema that a schema was made of, where it was: see `json-schema.ts`. */
export const RAW = new WeakMap<z.ZodType, JsonSchema>();

/**
 * Text that stands for a value in an id, however large the value is: 22 characters, different for different values.
 *
 * @example const id = `${new URL(url).hostname}_${await hashed([url, { depth: 2 }])}`;
 */
export async function hashed(value: unknown): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(value) ?? "");
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return btoa(String.fromCharCode(...digest))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .slice(0, 22);
}

/** What is wrong with a set of jobs, in words; empty when they can stand beside one another. */
export function conflicts(jobs: readonly Job[]): string[] {
  return jobs.flatMap((job, i) =>
    jobs.slice(0, i).flatMap((other) => {
      if (other.kind === job.kind) return [`Two jobs are of the kind ${job.kind}.`];
      const [short, long] = job.prefix.length < other.prefix.length ? [job, other] : [other, job];
      if (!long.prefix.startsWith(short.prefix)) return [];
      return [
        `A name that begins with ${long.prefix} could be of the kind ${long.kind} or of the kind ${short.kind}, whose names begin with ${short.prefix}. Give one of them another prefix.`,
      ];
    }),
  );
}

/** The tag of a job's promise that holds the id of the request that started it, for whoever reads the logs. */
export const REQUEST_TAG = "durable-mcp:request";

/** The tag of a job's promise that holds the version of its definition. A job from before there were versions has none. */
export const VERSION_TAG = "durable-mcp:version";
