/**
 * The interface that durable functions are written against. `core/engine/` implements it.
 *
 * A durable function runs from its start again after every sleep, every wait and every crash. Each call of the context
 * leaves a record in the job's journal, and a call that has a record returns the recorded outcome: its work is not repeated.
 * Five rules follow. Code that breaks one is refused at its first run, with a message that says what to write instead:
 *
 * 1. Code that has an effect or may differ the second time (a request, a timer) is in a step; for the time and random
 *    values there are `now`, `random` and `uuid`.
 * 2. Outside of steps, code awaits only the promises of these methods, and it awaits all of them.
 * 3. A step uses its own parameter, never the context around it, and changes no variable of the function: it returns a value.
 * 4. Work that runs side by side has names of its own: `ctx.all` and `ctx.race` see to that.
 * 5. Steps and functions return values that JSON can hold.
 */
import type * as z from "zod";
import type { FileData, FileLimits, FileReference, InputFile } from "./file.ts";

/**
 * A second in milliseconds, the unit of all times in this interface.
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
 * The log of a job: each line carries the job's name. Log no arguments and no results: they may hold secrets.
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
 * Counts and measures for the worker's `/metrics`. Names are in snake case; each name always has the same labels. A call that does
 * not fit is logged, and records nothing.
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
 * The parameter of a step's function: one attempt.
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
   * The same in all attempts of this step, and in no other step: 32 hexadecimal digits, for an `Idempotency-Key` header.
   * An attempt before a crash may have reached the other side; a server that knows the key does the work once.
   */
  readonly idempotencyKey: string;
  /** Aborted by the step's time-out, by the job's cancellation or deadline, and when another worker takes over the job. */
  readonly signal: AbortSignal;
  /** When the job times out, in milliseconds since the epoch. */
  readonly deadline: number;
  /**
   * The caller of the job: the same opaque text for all jobs of one caller; empty if callers are not told apart.
   */
  readonly owner: string;
  readonly env: Env;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Reports the progress of the step, as {@link Context.progress} does. */
  progress(done: number, total?: number, message?: string): void;
  /**
   * Stores a file of the job, up to 1 GB, and resolves with a reference to it. The step returns the reference, alone or in
   * its value: a file that the step's value does not name is removed, and so are the files of an attempt that fails.
   * `name`: up to 200 characters without slashes; `mimeType`: by default that of the data or of the name.
   *
   * @throws {NonRetryableError} in a deployment that keeps no files, for a malformed name, and for more than 1 GB
   *
   * @example const page = await ctx.step("page", async (step) => step.file("page.html", await fetch(url)));
   */
  file(name: string, data: FileData, options?: { mimeType?: string }): Promise<FileReference>;
  /**
   * Reads the bytes of a file: by its reference, a file of this job or of another job of the same caller; a `data:` URI; or
   * a `fileInput` from a client, which may be an `https` address. The stream fails if the bytes are not the stored ones.
   *
   * @throws {NonRetryableError} for a file that is gone or does not fit the limits, a private address, and any other text
   *
   * @example
   * const file = await ctx.step("report", (step) => step.file("report.csv", "a,b\n1,2\n"));
   * const text = await ctx.step("read", async (step) => new Response(await step.read(file)).text());
   */
  read(file: FileReference | InputFile | string, limits?: FileLimits): Promise<ReadableStream<Uint8Array>>;
}

/**
 * How a step that throws is retried: with pauses that double from `initialInterval` to `maxInterval`, half of each random,
 * until `maxDuration` has passed since the first failure or `maxAttempts` have failed. Times are in milliseconds. A pause
 * of more than five seconds holds no worker. Pauses and the count of attempts survive a crash.
 *
 * @example
 * const patient: Retry = { maxDuration: 6 * HOUR, initialInterval: 10 * SECOND, maxInterval: 10 * MINUTE };
 * await ctx.step("fetch", () => titleOf(url), { retry: patient });
 */
export interface Retry {
  /** Default 10 minutes. */
  maxDuration?: number;
  /** Default: any number. */
  maxAttempts?: number;
  /** Default 1 second. */
  initialInterval?: number;
  /** Default 1 minute. */
  maxInterval?: number;
}

/**
 * How a step is executed. Default: at least once, and retried for 10 minutes.
 *
 * @example
 * await ctx.step("fetch", () => titleOf(url), { timeout: MINUTE, retry: { maxAttempts: 3 } });
 */
export interface StepOptions {
  /**
   * `false`: no retry. A {@link NonRetryableError} and a programming error (a `TypeError` without a cause, a
   * `ReferenceError` or `RangeError`, a `ZodError`, code that does not compile) are never retried. The `SyntaxError` of broken JSON is.
   */
  retry?: Retry | false;
  /** How long an attempt may take, in milliseconds, before it is aborted and fails. Default: until the job's deadline. */
  timeout?: number;
  /**
   * The step begins at most once. If a crash leaves it unknown whether the step had its effect, the step fails with an
   * {@link StepInterrupted}. Default false: at least once.
   */
  atMostOnce?: boolean;
  /**
   * How many attempts of steps with this name in `concurrency` run at once, on all workers of the deployment together.
   * The others wait. An attempt's `timeout`, by default a minute, begins when its wait is over.
   */
  concurrency?: { name: string; limit: number };
  /**
   * How many attempts of steps with this name in `rate` begin within `per` milliseconds, on all workers of the deployment
   * together, for an upstream with a quota: `{ name: "billing", limit: 60, per: MINUTE }`. The others wait.
   * Temporal: `taskQueueActivitiesPerSecond`; Restate has no counterpart.
   */
  rate?: { name: string; limit: number; per: number };
}

/**
 * Options of a step whose recorded value is checked. A value that does not fit fails the step when `fn` returns it, without
 * another attempt, and blocks the job when it was recorded earlier: the code has changed. The step's result is the output of the
 * schema, the same in each replay; the value that `fn` returned is what is recorded. The schema checks and transforms at once,
 * without a time of day or a random value.
 *
 * @example
 * const order = async () => ({ due: "2026-12-24" }); // as a service answers
 * const { due } = await ctx.step("order", order, { schema: z.object({ due: z.coerce.date() }) }); // a Date
 */
export interface CheckedStepOptions<Result> extends StepOptions {
  schema: z.ZodType<Result>;
}

/**
 * A question to a person.
 *
 * @example
 * const release: Question = {
 *   message: "Release 1.2?",
 *   requestedSchema: { type: "object", properties: { approved: { type: "boolean" } }, required: ["approved"] },
 * };
 * await ctx.ask("approve", release);
 */
export interface Question {
  /** The text that the person reads. */
  message: string;
  /** JSON Schema of the answer's content: an object of primitive properties. */
  requestedSchema: {
    type: "object";
    properties: Record<string, unknown>;
    required?: string[];
    [keyword: string]: unknown;
  };
  /** `user` (the default): only a person answers. `anyone`: a model may as well. */
  answeredBy?: "user" | "anyone";
  /** Integers in the answer keep digits that a number cannot hold: they are `JSON.rawJSON`. Otherwise such an answer is refused. */
  keepsIntegers?: true;
}

/**
 * A question whose form is a zod schema: the content of the answer has its type. Rules that a form cannot express
 * (`refine`) are checked when the answer comes; {@link Context.ask} throws for an answer that does not fit.
 *
 * @example
 * const release = { message: "Release 1.2?", schema: z.object({ approved: z.boolean() }) } satisfies TypedQuestion<unknown>;
 * const answer = await ctx.ask("approve", release);
 * const isApproved = answer.action === "accept" && answer.content.approved; // a boolean
 */
export interface TypedQuestion<Content> extends Pick<Question, "message" | "answeredBy"> {
  /** An object of texts, numbers, booleans and choices of texts: forms have no other fields. A nullable one may be left empty. */
  schema: z.ZodType<Content>;
}

/**
 * The person filled in the form, declined, or closed it. A question that is cancelled comes back as `cancel`.
 *
 * @example
 * const answer: Answer = await ctx.ask("go on", question);
 * if (answer.action !== "accept") throw new NonRetryableError("nobody wants to go on");
 */
export type Answer<Content = Record<string, unknown>> =
  | { action: "accept"; content: Content }
  | { action: "decline" }
  | { action: "cancel" };

/**
 * Options of {@link Context.callback}. `schema`: checks what is sent. `for`: how long `result` waits, in milliseconds.
 *
 * @example
 * const options: CallbackOptions<{ paid: boolean }> = { schema: z.object({ paid: z.boolean() }), for: DAY };
 */
export interface CallbackOptions<T> {
  schema?: z.ZodType<T>;
  for?: number;
}

/**
 * An address for an outside system, and the value that the system sends to it. Anyone who knows `url` can send: it is a
 * secret.
 *
 * @example
 * const paid: Callback = ctx.callback("paid");
 * ctx.log.info("paid", { with: await paid.result });
 */
export interface Callback<T = unknown> {
  readonly url: string;
  readonly result: Promise<T>;
}

/** The part of a definition (see `defineJob`) that a durable function needs to start the job. */
export interface Startable<Args, Result = unknown> {
  readonly kind: string;
  readonly args: { parse(value: unknown): Args };
  readonly result?: { parse(value: unknown): Result } | undefined;
  readonly shared?: boolean;
}

/**
 * A job that a durable function started. Temporal: a `ChildWorkflowHandle`; Restate: an `InvocationHandle`.
 *
 * @example
 * const today: ChildJob = await ctx.start(report, { day: "2026-11-21" });
 * ctx.log.info("waits", { for: today.name });
 * const text = await today.result();
 */
export interface ChildJob<Result = unknown> {
  /** The name that callers use for the job. */
  readonly name: string;
  /** Waits for the job's result, as {@link Context.await} does. @throws {JobFailed} when the job ends without one */
  result(): Promise<Result>;
  /** Cancels the job. A `shared` job that others started as well goes on for them. A job that has ended stays as it is. */
  cancel(): Promise<void>;
}

/**
 * Options of {@link Context.start}. `name`: of the call, by default `start` and the kind of job.
 *
 * @example
 * const options: ChildJobOptions = { ifExists: "join", whenParentEnds: "leave" };
 */
export interface ChildJobOptions {
  name?: string;
  /**
   * `join`: returns the job of that name even if it was started with other arguments, which the definition's `id` leaves out.
   * By default such a start throws, unless the definition has `otherArguments: "accept"`.
   */
  ifExists?: "join";
  /**
   * `cancel`: the job is cancelled, with its clean-up, if the job that starts it fails, is cancelled or times out, or if the branch or
   * item that starts it is given up; a `shared` job goes on for others that want it. A job that completes leaves its children.
   * `leave`: it is left in any case, as are jobs of one caller that existed before, and those that a clean-up starts. The default is
   * `leave` for `shared` jobs, otherwise `cancel`. Temporal: `ParentClosePolicy`; Restate has no counterpart.
   */
  whenParentEnds?: "cancel" | "leave";
}

/**
 * Options of {@link Context.all} and {@link Context.allSettled}. `concurrency`: how many items run at once.
 *
 * @example
 * const options: AllOptions<{ url: string }> = { key: ({ url }) => url, concurrency: 5 };
 */
export interface AllOptions<Item> {
  name?: string;
  key?: (item: Item, index: number) => string | number;
  concurrency?: number;
}

/**
 * The branch of {@link Context.race} or {@link Context.any} that won, and its value.
 *
 * @example
 * const late = ({ winner }: Winner<{ late(ctx: Context): Promise<void> }>) => winner === "late";
 */
export type Winner<Branches extends Record<string, (ctx: Context<Env>) => Promise<unknown>>, Env = unknown> = {
  [K in keyof Branches]: { winner: K; value: Awaited<ReturnType<Branches[K]>> };
}[keyof Branches];

/**
 * The first parameter of a durable function. Everything that the function does goes through it.
 *
 * @example
 * export async function titles(ctx: Context, { pages }: { pages: string[] }) {
 *   return ctx.all(pages, (ctx, page) => ctx.step("title", () => titleOf(page)));
 * }
 */
export interface Context<Env = unknown> {
  /** The name that callers use for the job. */
  readonly jobName: string;
  /** When the job times out, in milliseconds since the epoch. */
  readonly deadline: number;
  /** Aborted when the job is cancelled, at its deadline, and when another worker takes it over. */
  readonly signal: AbortSignal;
  /** The variables and secrets that the code asked for with `implement`. */
  readonly env: Env;
  readonly log: Log;
  readonly metrics: Metrics;

  /**
   * Runs `fn` and records its outcome: a value that JSON can hold, up to 1 MB. If `fn` throws, it is retried (see
   * {@link StepOptions}); in the end the step throws the last failure: an `Error` with its name, message, `code`,
   * `status` and `cause`, or an error of the same class (see `errors` of a definition). With a `schema`, the value is checked:
   * see {@link CheckedStepOptions}.
   *
   * @example const page = await ctx.step("fetch", async ({ signal }) => (await fetch(url, { signal })).text());
   */
  step<T>(name: string, fn: (step: Step<Env>) => unknown, options: CheckedStepOptions<T>): Promise<T>;
  step<T>(name: string, fn: (step: Step<Env>) => T | Promise<T>, options?: StepOptions): Promise<T>;

  /**
   * Sleeps for a number of milliseconds, or until a `Date`. A sleep holds no worker.
   *
   * @example await ctx.sleep("until tomorrow", DAY);
   */
  sleep(name: string, until: number | Date): Promise<void>;

  /**
   * Calls `check` every `every` milliseconds until it returns a truthy value, and returns that value. Holds no worker
   * between two looks, and records no look that finds nothing. A look that throws has found nothing, except for errors
   * that are never retried: `until` throws those. After `for` milliseconds it makes a last look, and throws a
   * `NonRetryableError` if that finds nothing. Without `for`, or if the job's deadline comes first, the last look is the last
   * regular one before the deadline.
   *
   * @example await ctx.until("up", { every: 30 * SECOND, for: DAY }, async () => (await fetch(url)).ok);
   */
  until<T>(
    name: string,
    options: { every: number; for?: number },
    check: (look: Step<Env>) => T | Promise<T>,
  ): Promise<Exclude<T, false | null | undefined | 0 | "">>;

  /**
   * Runs `fn` for all items side by side, each with a context of its own; results come in the order of the items. Items
   * that are strings or numbers name their contexts; others need `key`. All keys must differ.
   *
   * The first item that fails ends the call, which throws its error. All other items are given up, and their steps are
   * aborted. The error's `givenUp` lists their keys, and the log says how many. {@link allSettled} lets all items end.
   *
   * Temporal: `Promise.all` of Activities; Restate: `RestatePromise.all`. Neither gives the others up.
   *
   * @example const titles = await ctx.all(urls, async (ctx, url) => ctx.step("title", () => titleOf(url)));
   */
  all<Item, T>(
    items: readonly Item[],
    fn: (ctx: Context<Env>, item: Item, index: number) => Promise<T>,
    options?: AllOptions<Item>,
  ): Promise<T[]>;

  /**
   * As {@link all}, but every item runs to its end: returns for each `{ status: "fulfilled", value }` or
   * `{ status: "rejected", reason }`, in the order of the items. After a cancellation or the deadline it begins no further
   * items: they are rejected as well. Temporal: `Promise.allSettled`; Restate: `RestatePromise.allSettled`.
   *
   * @example const ended = await ctx.allSettled(urls, async (ctx, url) => ctx.step("title", () => titleOf(url)));
   */
  allSettled<Item, T>(
    items: readonly Item[],
    fn: (ctx: Context<Env>, item: Item, index: number) => Promise<T>,
    options?: AllOptions<Item>,
  ): Promise<PromiseSettledResult<T>[]>;

  /**
   * Runs branches side by side. Returns the name and the value of the one that ends first, or throws its error; the
   * others are abandoned. The winner is recorded. Temporal: `Promise.race`; Restate: `RestatePromise.race`.
   *
   * @example const { winner } = await ctx.race({ answer: (c) => c.ask("ok", question), late: (c) => c.sleep("late", DAY) });
   */
  race<Branches extends Record<string, (ctx: Context<Env>) => Promise<unknown>>>(
    branches: Branches,
    options?: { name?: string },
  ): Promise<Winner<Branches, Env>>;

  /**
   * As {@link race}, but returns the first branch that succeeds. If all fail, it throws an `AggregateError` with their
   * `errors`. Temporal: `Promise.any`; Restate: `RestatePromise.any`.
   *
   * @example const { value } = await ctx.any({ a: (c) => c.step("a", () => titleOf(url)), b: (c) => c.step("b", () => titleOf(url)) });
   */
  any<Branches extends Record<string, (ctx: Context<Env>) => Promise<unknown>>>(
    branches: Branches,
    options?: { name?: string },
  ): Promise<Winner<Branches, Env>>;

  /**
   * Runs `fn` with a context of its own, for at most `ms` milliseconds; then it abandons `fn`, and throws a
   * {@link TimeoutError}. Temporal: `CancellationScope.withTimeout`; Restate: `orTimeout`.
   *
   * @example const text = await ctx.timeout(HOUR, async (ctx) => (await ctx.start(report, { day: "2026-11-21" })).result());
   */
  timeout<T>(ms: number, fn: (ctx: Context<Env>) => Promise<T>, options?: { name?: string }): Promise<T>;

  /**
   * Undoes something if the job does not complete: after a failure, a cancellation and the deadline, the undos run in the reverse
   * order of these calls, each as a recorded step, within the time of `cleanup` in the definition. Call it before a step whose
   * effect may remain unknown, and after one that only success makes worth undoing. What the function left running is given up
   * first. An undo that fails is named in the job's reason, and the others still run. A function that catches its error and
   * returns keeps what it has done; one that was cancelled does not, whatever it returns. Temporal: a saga by hand in
   * `CancellationScope.nonCancellable`; Restate: compensations in `catch`.
   *
   * @example
   * ctx.onUndo("release", ({ signal }) => fetch(url, { method: "DELETE", signal }).then(() => null));
   * await ctx.step("reserve", ({ signal }) => fetch(url, { method: "PUT", signal }).then(() => null));
   */
  onUndo(name: string, fn: (step: Step<Env>) => unknown, options?: StepOptions): void;

  /**
   * Runs `fn` with a context whose calls a cancellation and the deadline do not end, and which also works after them, where every
   * other call throws the {@link JobCancelled} or {@link DeadlineExceeded} again: for `finally` and `catch`. It has the time of
   * `cleanup` in the definition. Several in one context that may overlap need a `name`. Temporal:
   * `CancellationScope.nonCancellable`; Restate: any call in `catch`.
   *
   * @example
   * try {
   *   await ctx.sleep("a while", HOUR);
   * } finally {
   *   await ctx.cleanup((ctx) => ctx.step("close", () => fetch(url, { method: "DELETE" }).then(() => null)));
   * }
   */
  cleanup<T>(fn: (ctx: Context<Env>) => Promise<T>, options?: { name?: string }): Promise<T>;

  /**
   * Starts another job for the caller of this one, or finds it. Takes the definition of `defineJob` or `defineDurableTool`.
   * Throws a {@link NonRetryableError} if the job that has its name has other arguments: see {@link ChildJobOptions}.
   * Temporal: `startChild`; Restate: `ctx.serviceSendClient`.
   *
   * @example const child = await ctx.start(report, { day: "2026-11-21" });
   */
  start<Args, Result = unknown>(
    job: Startable<Args, Result> | { readonly job: Startable<Args, Result> },
    args: Args,
    options?: ChildJobOptions,
  ): Promise<ChildJob<Result>>;

  /**
   * Waits for another job of the same caller, and returns its result. Takes the job's name, or a {@link ChildJob}, also in a
   * branch that did not start it. Waiting holds no worker. Throws a {@link JobFailed} when the job ends without a result.
   *
   * @example const text = await ctx.await(await ctx.start(report, { day: "2026-11-21" }));
   */
  await<T = unknown>(job: string | ChildJob<T>): Promise<T>;

  /**
   * Asks a question, and waits for the answer until the job's deadline. Waiting holds no worker. Several questions may be
   * open at once, under different names. Temporal: a Signal and `condition`; Restate: an awakeable.
   *
   * @example const answer = await ctx.ask("go on", { message: "Go on?", requestedSchema: { type: "object", properties: {} } });
   */
  ask<Content>(name: string, question: TypedQuestion<Content>): Promise<Answer<Content>>;
  ask(name: string, question: Question): Promise<Answer>;

  /**
   * Makes an address for an outside system, and waits for the value that the system sends. The first `POST` to `url`
   * counts: JSON, or other text, of up to 100,000 bytes. It is kept even if it comes before `result` is awaited, or while no
   * worker runs. Later ones are answered with 409, those after the job's end with 410, and those that do not fit `schema`
   * with 422.
   * `result` throws a {@link TimeoutError} after `for` milliseconds (default: at the job's deadline). Temporal:
   * asynchronous completion of an Activity; Restate: an awakeable.
   *
   * @example
   * const paid = ctx.callback("paid", { schema: z.object({ amount: z.number() }), for: DAY });
   * await ctx.step("order", ({ signal }) => fetch(url, { method: "POST", body: paid.url, signal }).then(() => null));
   * const { amount } = await paid.result;
   */
  callback<T = unknown>(name: string, options?: CallbackOptions<T>): Callback<T>;

  /**
   * Counts an amount that the job spends of a `budget` in its definition, and returns what is left. An amount that exceeds
   * the budget is counted as well; then, as the definition says, the call fails with a {@link BudgetExceeded}, or the job
   * asks its user whether it may spend more. The sum stays exact through crashes, and for calls side by side. Temporal and
   * Restate have no counterpart.
   *
   * @example
   * const { text, tokens } = await ctx.step("ask the model", () => ({ text: "…", tokens: 1_200 }));
   * const { left } = await ctx.spend(tokens, { of: "tokens" });
   */
  spend(amount: number, options: { of: string }): Promise<Spent>;

  /**
   * Reports the progress of the job to its viewers. It is not awaited, and cheap: not every call is stored.
   *
   * @example ctx.progress(7, 36, "7 of 36 months");
   */
  progress(done: number, total?: number, message?: string): void;
  progress(message: string): void;

  /**
   * Gives callers a partial result: a value that JSON can hold, up to 50 kB. Partial results are kept with the job in the
   * order of the calls, each once, and `probe_status` and `await_result` return them while the job runs.
   *
   * @example await ctx.emit({ page: url, title: await ctx.step("title", () => titleOf(url)) });
   */
  emit(value: unknown): Promise<void>;

  /**
   * Sends an event of the definition's `events` to its subscribers: the payload is up to 16 kB of JSON. Events are kept with
   * the job in the order of the calls, each once. Temporal and Restate have no counterpart.
   *
   * @example await ctx.event("price.changed", { price: await ctx.step("price", () => 12) });
   */
  event(name: string, payload: unknown): Promise<void>;

  /**
   * The Resonate server's time of the newest outcome that the function knows of, in milliseconds since the epoch. The same
   * whenever the function runs again.
   *
   * @example
   * const end = ctx.now() + HOUR;
   * while (ctx.now() < end) await ctx.sleep("a while", 10 * MINUTE);
   */
  now(): number;

  /**
   * A random number, at least 0 and less than 1: the same whenever the function runs again.
   *
   * @example const page = urls[Math.floor(ctx.random() * urls.length)];
   */
  random(): number;

  /**
   * A random UUID, the same whenever the function runs again. It is made from a secret in the job's promise; jobs that
   * other Resonate clients have started have no secret there, and their UUIDs can be guessed.
   *
   * @example const order = ctx.uuid();
   */
  uuid(): string;
}

/**
 * The context of a job's own function, which can continue in another run. Contexts of items and branches cannot.
 *
 * @example
 * const watch = async (ctx: JobContext<{ night: number }>, { night }: { night: number }) => {
 *   await ctx.sleep("until tomorrow", DAY);
 *   return night < 300 ? ctx.continueAs({ night: night + 1 }) : { nights: night };
 * };
 */
export interface JobContext<Args, Env = unknown> extends Context<Env> {
  /**
   * Ends this run of the job, and begins the next one with other arguments, an empty journal and the newest version of the
   * code, under the same name: callers who wait for the job go on waiting. So each run of a job that repeats itself forever
   * costs as much as the first. Partial results, progress and spent budgets carry over; the deadline is that of the whole
   * job. Write it after `return`: `finally` still runs, but code after an `await` of it never does.
   *
   * Refused for arguments that do not fit the definition, in items and branches, and while any call except a sleep or an
   * `await` of a job is open. Temporal: `continueAsNew`; Restate has no counterpart.
   *
   * @example
   * async function nightly(ctx: JobContext<{ night: number }>, { night }: { night: number }) {
   *   await ctx.step("report", () => titleOf(url));
   *   await ctx.sleep("until tomorrow", DAY);
   *   return ctx.continueAs({ night: night + 1 });
   * }
   */
  continueAs(args: Args): Promise<never>;
}

/**
 * Thrown by a step for a failure that a retry cannot fix: a refusal, a bad argument.
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
 * Thrown by a step for a failure that is worth a retry after at least `retryAfter` milliseconds.
 *
 * @example
 * await ctx.step("fetch", async () => {
 *   const response = await fetch(url);
 *   const retryAfter = parseRetryAfter(response.headers.get("retry-after")) ?? 30 * SECOND;
 *   if (response.status === 429) throw new RetryableError("asked to wait", { retryAfter });
 *   return response.text();
 * });
 */
export class RetryableError extends Error {
  override name = "RetryableError";
  readonly retryAfter: number;

  constructor(message: string, options: ErrorOptions & { retryAfter: number }) {
    super(message, options);
    this.retryAfter = options.retryAfter;
  }
}

/**
 * The pause that a header `Retry-After` asks for, in milliseconds; undefined if the header is absent, or is neither a number of
 * seconds nor an HTTP date.
 *
 * @example
 * const asked = (response: Response) => parseRetryAfter(response.headers.get("retry-after")) ?? 30 * SECOND;
 */
export function parseRetryAfter(header: string | null, now = Date.now()): number | undefined {
  if (header === null) return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header) * SECOND;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/**
 * The limits of what a job may spend, by the name of the budget. When a limit is exceeded, `fail` (the default) throws a
 * {@link BudgetExceeded}, and `ask` asks the user for more, again each time that is used up. If the user does not allow
 * more, or the job is cancelled or late before the answer, nobody is asked again: later calls throw a `BudgetExceeded`.
 *
 * @example
 * const budget: Budgets = { tokens: { limit: 100_000, onExceeded: "ask" }, pages: { limit: 500 } };
 */
export type Budgets = Readonly<Record<string, { limit: number; onExceeded?: "ask" | "fail" }>>;

/**
 * The amounts spent and left of a budget.
 *
 * @example
 * const isScarce = ({ left, limit }: Spent) => left < limit / 10;
 */
export interface Spent {
  spent: number;
  /** The amount that may be spent, including what the user has allowed since. */
  limit: number;
  left: number;
}

/**
 * A job has spent more than its budget.
 *
 * @example
 * const isSpent = (error: unknown) => error instanceof BudgetExceeded && error.of === "tokens";
 */
export class BudgetExceeded extends NonRetryableError {
  override name = "BudgetExceeded";
  readonly of: string;
  readonly spent: number;
  readonly limit: number;

  constructor(of: string, { spent, limit }: Spent, reason?: string) {
    super(`${spent} of ${limit} ${of} are spent${reason === undefined ? "" : `: ${reason}`}`);
    this.of = of;
    this.spent = spent;
    this.limit = limit;
  }
}

/**
 * A step with `atMostOnce` was begun, and its worker ended before the outcome was recorded. The step is not repeated.
 *
 * @example
 * const mayBePaid = (error: unknown) => error instanceof StepInterrupted && error.begunAt < Date.UTC(2026, 10, 20);
 */
export class StepInterrupted extends NonRetryableError {
  override name = "StepInterrupted";
  /** In milliseconds since the epoch. */
  readonly begunAt: number;

  constructor(begunAt: number) {
    const at = new Date(begunAt).toISOString();
    super(`it was begun at ${at}, and whether it had its effect is unknown: it is not repeated`);
    this.begunAt = begunAt;
  }
}

/**
 * A class of errors, for `errors` in a definition.
 *
 * @example
 * class HttpError extends Error {
 *   status = 0;
 * }
 * const errors: readonly ErrorClass[] = [HttpError];
 */
export type ErrorClass = abstract new (...args: never) => Error;

/**
 * An awaited job ended without a result. The message is its reason; `status` is `failed`, `cancelled` or `timed_out`.
 *
 * @example
 * try {
 *   const child = await ctx.start(report, { day: "2026-11-20" });
 *   await child.result();
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
 * The job was cancelled: thrown at the call of `ctx` that the function waits in, and at every call that it makes afterwards, except
 * inside of {@link Context.cleanup}. So a `catch` cannot keep the job going: its undos ({@link Context.onUndo}) run in any case. Before that, steps under way have a few seconds to end, if their worker is alive. `unfinished` names those that
 * did not end, and those whose outcome would have ended the function: whether they had their effect is unknown.
 *
 * An open `all`, `race`, `any` or `timeout` then ends when all its items or branches have ended, so that each cleans up. A
 * branch that returns a value wins over those that throw.
 *
 * @example
 * try {
 *   await ctx.step("reserve", ({ idempotencyKey }) => fetch(`${url}?key=${idempotencyKey}`, { method: "PUT" }).then(() => 1));
 * } catch (error) {
 *   const mayBeReserved = error instanceof JobCancelled && error.unfinished.includes("reserve");
 *   if (mayBeReserved) await ctx.cleanup((ctx) => ctx.step("release", () => fetch(url, { method: "DELETE" }).then(() => 1)));
 *   throw error;
 * }
 */
export class JobCancelled extends Error {
  override name = "JobCancelled";
  readonly unfinished: readonly string[];

  constructor(unfinished: readonly string[]) {
    super("the job was cancelled");
    this.unfinished = unfinished;
  }
}

/**
 * The job's deadline has come: thrown at the call of `ctx` that the function waits in, and at every call that it makes afterwards,
 * except inside of {@link Context.cleanup}, for as long as `cleanup` in the definition allows. A value that the function then returns is its result. Items
 * and branches clean up as after a cancellation: see {@link JobCancelled}. If a job that has run a step waits only for sleeps
 * that would end after the deadline, they throw it at once, and the clean-up has until the deadline and `cleanup` are over.
 * `unfinished` names the steps that were under way and did not end: whether they had their effect is unknown.
 *
 * @example
 * const titles: string[] = [];
 * try {
 *   for (const each of [url]) titles.push(await ctx.step("title", () => titleOf(each)));
 * } catch (error) {
 *   if (!(error instanceof DeadlineExceeded)) throw error; // otherwise what there is by then
 * }
 */
export class DeadlineExceeded extends Error {
  override name = "DeadlineExceeded";
  readonly unfinished: readonly string[];

  constructor(unfinished: readonly string[] = [], reason = "the job did not finish before its deadline") {
    super(reason);
    this.unfinished = unfinished;
  }
}

/**
 * Thrown by {@link Context.timeout}, by the `result` of a {@link Callback} and by a step with a `timeout` when their time is up.
 *
 * @example
 * const slow = (error: unknown) => error instanceof TimeoutError;
 * await ctx.timeout(HOUR, (ctx) => ctx.ask("go on", question)).catch((error) => ctx.log.warn("given up", { slow: slow(error) }));
 */
export class TimeoutError extends Error {
  override name = "TimeoutError";
}

/**
 * Thrown by a durable function for a failure of the server rather than of the work: its task then fails with a protocol
 * error, not with a tool error.
 *
 * @example
 * if (!url.startsWith("http")) throw new ProtocolFailure("this server was set up without its site");
 */
export class ProtocolFailure extends Error {
  override name = "ProtocolFailure";
}

/**
 * The function breaks one of the rules above. The job fails with this message, even if the function catches it, and no more of it
 * runs. Only after a value that cannot be stored does the function go on, to undo what it has done.
 *
 * @example
 * // The step returns a value that JSON cannot hold: it fails at its first run, without another attempt.
 * const broken = () => ctx.step("now", () => new Map()).catch((error) => error instanceof NondeterminismError);
 */
export class NondeterminismError extends Error {
  override name = "NondeterminismError";
}
