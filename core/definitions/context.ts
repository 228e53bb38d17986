/**
 * What a durable function works with: the whole of the author's interface. `replay.ts` implements it.
 *
 * A durable function runs from its start again after every sleep, every wait and every crash. What it did before is not
 * done again: each of these calls has a record, and a call that has one answers from it. So five rules hold, and code
 * that breaks one is refused at its first run, in words:
 *
 * 1. What has an effect, or may differ the second time (a request, a random number, the time of day), is in a step.
 * 2. Outside of steps nothing is awaited but what these methods return.
 * 3. A step uses what is handed to it, never the context around it, and changes nothing outside of itself: it returns.
 * 4. Work that runs side by side has names of its own: `ctx.all` and `ctx.race` see to that.
 * 5. Steps return, and functions return, what JSON can hold.
 */

/**
 * A second in milliseconds, as every time in this interface is.
 *
 * @example
 * await ctx.sleep("a little", 30 * SECOND);
 */
export const SECOND = 1_000;
/**
 * A minute in milliseconds.
 *
 * @example
 * await ctx.sleep("a while", 5 * MINUTE);
 */
export const MINUTE = 60 * SECOND;
/**
 * An hour in milliseconds.
 *
 * @example
 * await ctx.sleep("some hours", 3 * HOUR);
 */
export const HOUR = 60 * MINUTE;
/**
 * A day in milliseconds.
 *
 * @example
 * await ctx.sleep("a month", 30 * DAY);
 */
export const DAY = 24 * HOUR;

/**
 * What is logged carries the job's name. Never an argument or a result, which may be somebody's secret.
 *
 * @example
 * ctx.log.info("gathered", { months: 36 });
 */
export interface Log {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/**
 * Counts and measures for the worker's `/metrics`. Names in snake case; each name has always the same labels.
 *
 * @example
 * ctx.metrics.count("pages", { status: "200" });
 * ctx.metrics.observe("page", 0.25);
 */
export interface Metrics {
  /** Adds to the counter `durable_job_{name}_total`. */
  count(name: string, labels?: Record<string, string>): void;
  /** Records a time in seconds in the histogram `durable_job_{name}_seconds`. */
  observe(name: string, seconds: number, labels?: Record<string, string>): void;
}

/**
 * What one attempt of a step works with.
 *
 * @example
 * const charge = async ({ attempt, idempotencyKey, signal }: Step) => {
 *   const headers = { "idempotency-key": idempotencyKey };
 *   return { attempt, ok: (await fetch(url, { method: "POST", headers, signal })).ok };
 * };
 * await ctx.step("charge", charge);
 */
export interface Step<Env = unknown> {
  /** 1 for the first attempt. */
  readonly attempt: number;
  /**
   * The same in every attempt of this step and no other: 32 characters, fit for an `Idempotency-Key` header. An attempt
   * may have reached the other side before a crash; a server that knows the key does the work once.
   */
  readonly idempotencyKey: string;
  /** Aborted by the step's time-out, by the job's cancellation or deadline, and when another worker takes the job over. */
  readonly signal: AbortSignal;
  /** When the job times out, in milliseconds since the epoch. */
  readonly deadline: number;
  /**
   * Whose job it is: the same text for all jobs of one caller, which says nothing of who that is; empty where callers are
   * not told apart. For turns by caller before something that is scarce: see {@link Turns}.
   */
  readonly owner: string;
  readonly env: Env;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Tells whoever looks how far the step is. */
  progress(done: number, total?: number, message?: string): void;
}

/**
 * How a step that throws is tried again: with pauses that double from `first` to `longest`, half of each random, until
 * `for` has passed since the first failure, or `attempts` have failed. All in milliseconds. A pause of more than five
 * seconds holds no worker, and survives a crash, as the count of attempts does.
 *
 * @example
 * const patient: Retry = { for: 6 * HOUR, first: 10 * SECOND, longest: 10 * MINUTE };
 * await ctx.step("fetch", () => titleOf(url), { retry: patient });
 */
export interface Retry {
  /** Default 10 minutes. */
  for?: number;
  /** Default: any number. */
  attempts?: number;
  /** Default 1 second. */
  first?: number;
  /** Default 1 minute. */
  longest?: number;
}

/**
 * How a step is done, and done again. Default: tried again for 10 minutes, at least once.
 *
 * @example
 * await ctx.step("fetch", () => titleOf(url), { timeout: MINUTE, retry: { attempts: 3 } });
 */
export interface StepOptions {
  /**
   * `false`: never tried again. Whatever this says, a {@link NonRetryableError} and a programming error (a `TypeError`
   * without a cause, a `ReferenceError`, `RangeError` or `SyntaxError`) are not tried again.
   */
  retry?: Retry | false;
  /** How long one attempt may take, in milliseconds; then its signal is aborted and it has failed. Default: no limit but the job's. */
  timeout?: number;
  /**
   * The step is begun at most once: where a crash leaves unknown whether it had its effect, it fails with words that say
   * so, and is never repeated. Default false: at least once.
   */
  atMostOnce?: boolean;
  /**
   * How many attempts of steps with a limit of this name may be under way at once, on all workers of the deployment
   * together: for an upstream that takes no more. The others wait; an attempt's `timeout`, a minute unless it says
   * otherwise, begins when it is its turn.
   */
  limit?: { name: string; most: number };
}

/**
 * What a person is asked.
 *
 * @example
 * const release: Question = {
 *   message: "Release 1.2?",
 *   requestedSchema: { type: "object", properties: { approved: { type: "boolean" } }, required: ["approved"] },
 * };
 * await ctx.ask("approve", release);
 */
export interface Question {
  /** What is asked, for the person who answers. */
  message: string;
  /** JSON Schema of the answer: an object of primitive properties. */
  requestedSchema: {
    type: "object";
    properties: Record<string, unknown>;
    required?: string[];
    [keyword: string]: unknown;
  };
  /** `user` (the default): only a person answers. `anyone`: a model may as well. */
  answeredBy?: "user" | "anyone";
}

/**
 * What the person did: filled in the form, refused to, or closed it.
 *
 * @example
 * const answer: Answer = await ctx.ask("go on", question);
 * if (answer.action !== "accept") throw new NonRetryableError("nobody wants to go on");
 */
export type Answer =
  | { action: "accept"; content: Record<string, unknown> }
  | { action: "decline" }
  | { action: "cancel" };

/** A job that can be started from a durable function: a definition (see `defineJob`). */
export interface Startable<Args> {
  readonly kind: string;
  readonly args: { parse(value: unknown): Args };
}

/**
 * What a durable function is handed: everything it does goes through this.
 *
 * @example
 * export async function titles(ctx: Context, { pages }: { pages: string[] }) {
 *   return ctx.all(pages, (ctx, page) => ctx.step("title", () => titleOf(page)));
 * }
 */
export interface Context<Env = unknown> {
  /** The name by which callers know the job. */
  readonly jobName: string;
  /** When the job times out, in milliseconds since the epoch. */
  readonly deadline: number;
  /** Aborted when the job is cancelled, at its deadline, and when another worker takes it over. */
  readonly signal: AbortSignal;
  /** The variables and secrets that the function's family asked for. */
  readonly env: Env;
  readonly log: Log;
  readonly metrics: Metrics;

  /**
   * Does something once and keeps its outcome. What `fn` throws is tried again (see {@link StepOptions}); in the end the
   * step throws an `Error` with that name, message and `code`.
   *
   * @example const page = await ctx.step("fetch", async ({ signal }) => (await fetch(url, { signal })).text());
   */
  step<T>(name: string, fn: (step: Step<Env>) => T | Promise<T>, options?: StepOptions): Promise<T>;

  /**
   * Sleeps for a number of milliseconds, or until a moment, and holds no worker meanwhile.
   *
   * @example await ctx.sleep("until tomorrow", DAY);
   */
  sleep(name: string, until: number | Date): Promise<void>;

  /**
   * Looks again and again until `check` returns something true, which it returns. Between two looks no worker is held,
   * and a look that found nothing leaves no record. A look that throws has found nothing, unless it threw what cannot
   * get better. Throws a {@link NonRetryableError} when `for` (default: until the job's deadline) has passed.
   *
   * @example await ctx.until("up", { every: 30 * SECOND, for: DAY }, async () => (await fetch(url)).ok);
   */
  until<T>(
    name: string,
    options: { every: number; for?: number },
    check: (look: Step<Env>) => T | Promise<T>,
  ): Promise<Exclude<T, false | null | undefined | 0 | "">>;

  /**
   * Does something for every item, side by side, each with a context of its own; results come in the order of the items.
   * Items that are strings or numbers name their contexts; others need `key`. No two items may have one key.
   *
   * @example const titles = await ctx.all(urls, async (ctx, url) => ctx.step("title", () => titleOf(url)));
   */
  all<Item, T>(
    items: readonly Item[],
    fn: (ctx: Context<Env>, item: Item, index: number) => Promise<T>,
    options?: { name?: string; key?: (item: Item, index: number) => string | number; concurrency?: number },
  ): Promise<T[]>;

  /**
   * The branch that ends first, by its name; the others are given up. The winner is recorded.
   *
   * @example const { winner } = await ctx.race({ answer: (c) => c.ask("ok", question), late: (c) => c.sleep("late", DAY) });
   */
  race<Branches extends Record<string, (ctx: Context<Env>) => Promise<unknown>>>(
    branches: Branches,
    options?: { name?: string },
  ): Promise<{ [K in keyof Branches]: { winner: K; value: Awaited<ReturnType<Branches[K]>> } }[keyof Branches]>;

  /**
   * Starts another job, or finds it, for the caller of this one. Returns its name, for {@link await}.
   *
   * @example const name = await ctx.start(report, { day: "2026-11-21" });
   */
  start<Args>(job: Startable<Args>, args: Args, options?: { name?: string }): Promise<string>;

  /**
   * Waits for another job of the same caller, wherever it was started, and returns its result. Holds no worker. Throws a
   * {@link JobFailed} when the job ends without a result.
   *
   * @example const text = await ctx.await<string>(await ctx.start(report, { day: "2026-11-21" }));
   */
  await<T = unknown>(jobName: string): Promise<T>;

  /**
   * Asks a question and sleeps until it is answered, for days if need be. Several may be asked at once, under names of
   * their own.
   *
   * @example const answer = await ctx.ask("go on", { message: "Go on?", requestedSchema: { type: "object", properties: {} } });
   */
  ask(name: string, question: Question): Promise<Answer>;

  /**
   * Tells whoever looks how far the job is. Not awaited, and cheap: not every call is written.
   *
   * @example ctx.progress(7, 36, "7 of 36 months");
   */
  progress(done: number, total?: number, message?: string): void;
  progress(message: string): void;
}

/**
 * Thrown by a step for what trying again cannot mend: a refusal, a bad argument.
 *
 * @example
 * await ctx.step("fetch", async () => {
 *   const response = await fetch(url);
 *   if (response.status === 404) throw new NonRetryableError("there is no such page");
 *   return response.text();
 * });
 */
export class NonRetryableError extends Error {
  override name = "NonRetryableError";
}

/**
 * Thrown by a step for a failure that is worth trying again, but not before `after` milliseconds: a `Retry-After`.
 *
 * @example
 * await ctx.step("fetch", async () => {
 *   const response = await fetch(url);
 *   const wait = Number(response.headers.get("retry-after") ?? 30) * SECOND;
 *   if (response.status === 429) throw new RetryLater("asked to wait", wait);
 *   return response.text();
 * });
 */
export class RetryLater extends Error {
  override name = "RetryLater";
  readonly after: number;

  constructor(message: string, after: number, options?: ErrorOptions) {
    super(message, options);
    this.after = after;
  }
}

/**
 * A job that was awaited ended without a result; the message is its reason.
 *
 * @example
 * try {
 *   await ctx.await(await ctx.start(report, { day: "2026-11-20" }));
 * } catch (error) {
 *   if (!(error instanceof JobFailed)) throw error;
 *   ctx.log.warn("no report", { status: error.status });
 * }
 */
export class JobFailed extends Error {
  override name = "JobFailed";
  readonly jobName: string;
  readonly status: string;

  constructor(jobName: string, status: string, reason: string) {
    super(reason);
    this.jobName = jobName;
    this.status = status;
  }
}

/**
 * Thrown by a durable function for a failure of the server rather than of the work: a task then fails as a protocol
 * error, not as a tool's.
 *
 * @example
 * if (!url.startsWith("http")) throw new ProtocolFailure("this server was set up without its site");
 */
export class ProtocolFailure extends Error {
  override name = "ProtocolFailure";
}

/**
 * The function breaks one of the rules above. The job fails with these words, whatever the function catches.
 *
 * @example
 * // A step that returns what JSON cannot hold: thrown at the first run, whatever the function catches.
 * const broken = () => ctx.step("now", () => new Map()).catch((error) => error instanceof RuleBroken);
 */
export class RuleBroken extends Error {
  override name = "RuleBroken";
}
