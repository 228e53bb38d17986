/** A context as the author sees it: the function's own, or that of an item or a branch. Its calls become commands. */
import {
  type AllOptions,
  type Answer,
  type Callback,
  type CallbackOptions,
  type ChildJob,
  type Context,
  DAY,
  type Log,
  type Metrics,
  NondeterminismError,
  type Question,
  SECOND,
  type Spent,
  type Startable,
  type Step,
  type StepOptions,
  TimeoutError,
  type TypedQuestion,
  type Winner,
} from "../../author/context.ts";
import { EVENT, LEFT_OUT } from "../../author/event.ts";
import { sourceLine } from "../../author/source-line.ts";
import { storable } from "../../author/values.ts";
import { outputId } from "../../resonate/ids.ts";
import { bytesIn } from "../../resonate/size.ts";
import { type Clock, words } from "../clock.ts";
import { outside } from "../guard/guard.ts";
import { Outcome } from "../guard/outcome.ts";
import { callbackOf, seededNumber, seededUuid } from "../guard/seeded.ts";
import type { Lease } from "../job-lease.ts";
import type { Runtime } from "../runtime.ts";
import { RecordRefused } from "../step-feature.ts";
import type { Command, CommandKind } from "./commands/command.ts";
import { type Commands, escaped, isTold } from "./commands/commands.ts";
import { fitting, formOf, received, schemaOf } from "./commands/form.ts";
import type { Spending } from "./commands/spending.ts";
import { AWAITED, ENDLESS } from "./determinism.ts";
import type { FunctionPass } from "./function-pass.ts";
import type { StateReport } from "./state-report.ts";

/** The longest name of a call, in UTF-16 code units. Awaited jobs may have longer names: the function has no choice. */
const MAX_NAME = 200;
const MAX_AWAITED = 1_000;

/** The longest partial result, in characters of JSON. */
const MAX_OUTPUT = 50_000;
/** The longest payload of an event, in characters of JSON. */
const MAX_PAYLOAD = 16_000;

/** Starts, cancellations and outputs are mere requests to the Resonate server, retried for as long as the job may run. */
const START_OPTIONS: StepOptions = { retry: { maxDuration: 366 * DAY, maxInterval: 5 * SECOND } };

const NO_ADDRESS =
  "needs the edge's public address and its key: set PUBLIC_URL and VIEW_KEY for the worker, as they are for the edge";

const LAST = "It is a function's last call: return ctx.continueAs(args)";

type Branches = Record<string, (ctx: Context) => Promise<unknown>>;

interface ContextParts {
  readonly commands: Commands;
  readonly lease: Lease;
  readonly pass: FunctionPass;
  readonly report: StateReport;
  readonly spending: Spending;
  readonly runtime: Runtime;
  readonly clock: Clock;
  /** Aborted when the job is cancelled, at its deadline, and when its lease is lost. */
  readonly signal: AbortSignal;
}

export class ExecutionContext implements Context {
  readonly #parts: ContextParts;
  readonly #parent: ExecutionContext | undefined;
  readonly #path: string;
  #isClosed = false;
  /** How many random values this context has derived from the seed. */
  #drawn = 0;

  constructor(parts: ContextParts, parent?: ExecutionContext, path = "") {
    this.#parts = parts;
    this.#parent = parent;
    this.#path = path;
    for (const [name, method] of METHODS) Reflect.set(this, name, method.bind(this));
  }

  get jobName(): string {
    return this.#parts.runtime.jobName;
  }

  get deadline(): number {
    const { cancelled, deadline } = this.#parts.runtime;
    return cancelled?.deadline ?? deadline;
  }

  get signal(): AbortSignal {
    return this.#parts.signal;
  }

  get env(): unknown {
    return this.#parts.runtime.env;
  }

  get log(): Log {
    return this.#parts.runtime.log;
  }

  get metrics(): Metrics {
    return this.#parts.runtime.metrics;
  }

  step<T>(name: string, fn: (step: Step) => T | Promise<T>, options: StepOptions = {}): Promise<T> {
    return this.#issue("step", name, (command) => {
      mustBeCalled(command, fn);
      const { onStep } = this.#parts.runtime;
      const problem = onStep && outside(() => onStep(command.path, fn));
      if (problem !== undefined) throw new NondeterminismError(problem);
      command.work = { do: "attempt", fn, options };
    });
  }

  start<Args, Result>(
    definition: Startable<Args, Result> | { readonly job: Startable<Args, Result> },
    args: Args,
    { name }: { name?: string } = {},
  ): Promise<ChildJob<Result>> {
    const job = definition && "job" in definition ? definition.job : definition;
    const prepare = (command: Command) => {
      if (typeof job?.args?.parse !== "function") {
        throw new NondeterminismError(
          "ctx.start takes a definition, as defineDurableTool and defineJob make it, and its arguments",
        );
      }
      const fn = () => this.#parts.runtime.start(job, args);
      command.work = { do: "attempt", fn, options: START_OPTIONS };
    };
    return this.#issue("start", name ?? `start ${job?.kind}`, prepare, {
      map: (name: string) => this.#child<Result>(name),
    });
  }

  #child<Result>(name: string): ChildJob<Result> {
    const cancel = (command: Command) => {
      const fn = async () => {
        await this.#parts.runtime.cancel(name);
        return null;
      };
      command.work = { do: "attempt", fn, options: START_OPTIONS };
    };
    return {
      name,
      result: () => this.await<Result>(name),
      cancel: async () => void (await this.#issue("step", `cancel ${name}`, cancel, { longest: MAX_AWAITED })),
    };
  }

  sleep(name: string, until: number | Date): Promise<void> {
    return this.#issue("sleep", name, (command) => {
      const end =
        typeof until === "number" ? outside(() => this.#parts.clock.now()) + until : Number(until?.getTime?.());
      if (!Number.isFinite(end)) {
        throw new NondeterminismError(`ctx.sleep("${name}"): until is ${until}; it takes milliseconds or a Date`);
      }
      // A timer has a delay of its due time less one, which cannot be negative.
      const due = Math.ceil(Math.max(end, 1));
      command.work = { do: "record", entry: { kind: "sleep", op: command.path }, when: { due } };
    });
  }

  ask<Content>(name: string, question: TypedQuestion<Content>): Promise<Answer<Content>>;
  ask(name: string, question: Question): Promise<Answer>;
  ask(name: string, asked: Question | TypedQuestion<unknown>): Promise<Answer<unknown>> {
    const prepare = (command: Command) => {
      const question = formOf(name, asked);
      command.question = question;
      command.work = {
        do: "record",
        entry: { kind: "ask", op: command.path, question },
        when: { until: this.#parts.pass.waitsUntil },
      };
    };
    const map = asked && "schema" in asked ? (answer: Answer) => fitting(name, asked, answer) : undefined;
    return this.#issue("ask", name, prepare, { map });
  }

  callback<T = unknown>(name: string, options: CallbackOptions<T> = {}): Callback<T> {
    let url = "";
    const prepare = (command: Command) => {
      const { runtime, lease, clock } = this.#parts;
      if (!runtime.callbackUrl) throw new NondeterminismError(`ctx.callback("${name}") ${NO_ADDRESS}`);
      const { schema, for: span = Number.POSITIVE_INFINITY } = options;
      if (!(span >= 1)) {
        throw new NondeterminismError(`ctx.callback("${name}"): for is ${span}; it takes milliseconds, 1 or more`);
      }
      const id = callbackOf(lease.run, command.path);
      url = runtime.callbackUrl(id);
      const form = schema && schemaOf(schema);
      const until = Math.min(Math.ceil(outside(() => clock.now()) + span), this.#parts.pass.waitsUntil);
      command.callback = { id, until, param: { callback: command.path, ...(form && { schema: form }) } };
    };
    const { schema } = options;
    const map = schema && ((value: unknown) => received(name, schema, value));
    const result = this.#issue<T>("callback", name, prepare, { map });
    return { url, result };
  }

  await<T>(job: string | ChildJob<T>): Promise<T> {
    return this.#issue("await", typeof job === "string" ? job : job?.name, () => {});
  }

  until<T>(
    name: string,
    options: { every: number; for?: number },
    check: (look: Step) => T | Promise<T>,
  ): Promise<Exclude<T, false | null | undefined | 0 | "">> {
    return this.#issue("until", name, (command) => {
      mustBeCalled(command, check);
      if (!(options.every >= 1)) {
        throw new NondeterminismError(
          `ctx.until("${name}"): every is ${options.every}; it takes milliseconds, 1 or more`,
        );
      }
      command.work = { ...options, do: "check", check };
    });
  }

  all<Item, T>(
    items: readonly Item[],
    fn: (ctx: Context, item: Item, index: number) => Promise<T>,
    options: AllOptions<Item> = {},
  ): Promise<T[]> {
    const { name = "all", key = plainKey, concurrency = Number.POSITIVE_INFINITY } = options;
    return this.#issue("all", name, (command) => {
      if (!Array.isArray(items) || typeof fn !== "function") {
        throw new NondeterminismError(
          "ctx.all takes a list and what is done for each: ctx.all(items, async (ctx, item) => …)",
        );
      }
      if (!(concurrency >= 1))
        throw new NondeterminismError(`ctx.all: concurrency is ${concurrency}; it takes 1 or more`);
      const keys = items.map((item, i) => String(key(item, i)));
      if (new Set(keys).size < keys.length) {
        const one = keys.find((each, i) => keys.indexOf(each) !== i);
        throw new NondeterminismError(
          `ctx.all: two items have the key "${one}". Give each its own: { key: (item) => … }`,
        );
      }
      const group = new ExecutionContext(this.#parts, this, `${command.path}/`);
      const results: T[] = new Array(items.length);
      const left = new Set(keys);
      let next = 0;
      let failed: { error: unknown } | undefined;
      const lane = async () => {
        for (let i = next++; i < items.length && !failed; i = next++) {
          const key = keys[i] as string;
          const context = group.#within(key);
          try {
            results[i] = await fn(context, items[i] as Item, i);
          } catch (error) {
            // The others clean up first.
            if (!this.#endsWhole(command)) throw error;
            failed ??= { error };
          } finally {
            left.delete(key);
          }
          context.#ended(`ctx.all: the function of item "${key}"`);
        }
      };
      const lanes = Array.from({ length: Math.min(concurrency, items.length) }, lane);
      const fail = (error: unknown) => {
        this.#ended("ctx.all: the function of an item");
        group.abandon();
        this.#saysGivenUp(command, error, [...left]);
        this.#settle(command, () => command.reject(error));
      };
      Promise.all(lanes).then(
        () => (failed ? fail(failed.error) : this.#settle(command, () => command.resolve(results))),
        fail,
      );
    });
  }

  allSettled<Item, T>(
    items: readonly Item[],
    fn: (ctx: Context, item: Item, index: number) => Promise<T>,
    options: AllOptions<Item> = {},
  ): Promise<PromiseSettledResult<T>[]> {
    const { pass } = this.#parts;
    const { window } = pass;
    const settled = async (ctx: Context, item: Item, i: number): Promise<PromiseSettledResult<T>> => {
      if (pass.told && this.#endsWhole({ window })) return { status: "rejected", reason: pass.told.error };
      try {
        return { status: "fulfilled", value: await fn(ctx, item, i) };
      } catch (reason) {
        return { status: "rejected", reason };
      }
    };
    return this.all(items, settled, { name: "allSettled", ...options });
  }

  race<B extends Branches>(branches: B, { name = "race" }: { name?: string } = {}): Promise<Winner<B>> {
    return this.#first("race", branches, name);
  }

  any<B extends Branches>(branches: B, { name = "any" }: { name?: string } = {}): Promise<Winner<B>> {
    const errors: unknown[] = [];
    const all = Object.keys(branches ?? {}).length;
    const isLast = (failed: boolean, error: unknown) => {
      if (!failed) return true;
      errors.push(error);
      if (errors.length < all) return false;
      const reasons = errors.map((each) => (each instanceof Error ? each.message : String(each)));
      return { error: new AggregateError(errors, `every branch failed: ${reasons.join("; ")}`) };
    };
    return this.#first("any", branches, name, { isLast });
  }

  timeout<T>(ms: number, fn: (ctx: Context) => Promise<T>, { name = "timeout" }: { name?: string } = {}): Promise<T> {
    const branches = { work: fn, late: (ctx: Context) => ctx.sleep("timeout", ms) };
    const map = ({ winner, value }: Winner<typeof branches>) => {
      if (winner === "late") throw new TimeoutError(`ctx.timeout: "${name}" took longer than ${words(ms)}`);
      return value as T;
    };
    return this.#first("timeout", branches, name, { map });
  }

  /**
   * Runs branches until `isLast` accepts the end of one, as it is (`true`) or with another error. If the function is told
   * to end meanwhile, all branches end: the first that succeeded wins, and otherwise one that throws what it was told.
   */
  #first<B extends Branches, T = Winner<B>>(
    call: "race" | "any" | "timeout",
    branches: B,
    name: string,
    {
      isLast = () => true,
      map,
    }: {
      isLast?: (failed: boolean, error: unknown) => boolean | { error: Error };
      map?: (winner: Winner<B>) => T;
    } = {},
  ): Promise<T> {
    const prepare = (command: Command) => {
      const entries = Object.entries(branches ?? {});
      if (entries.length === 0) throw new NondeterminismError(`ctx.${call}: it has no branches`);
      if (!entries.every(([, branch]) => typeof branch === "function")) {
        const form = call === "timeout" ? "ms, (ctx) => …" : "{ a: (ctx) => …, b: (ctx) => … }";
        throw new NondeterminismError(`ctx.${call} takes a function for each branch: ctx.${call}(${form})`);
      }
      const group = new ExecutionContext(this.#parts, this, `${command.path}/`);
      const contexts = new Map(entries.map(([key]) => [key, group.#within(key)]));
      let left = entries.length;
      let first: Command["winner"];
      let succeeded: Command["winner"];
      let told: Command["winner"];
      const ended = (key: string, value: unknown, failed: boolean) => {
        if (command.winner || command.isOver) return;
        this.#ended(`ctx.${call}: the branch "${key}"`);
        left -= 1;
        const last = isLast(failed, value);
        const end = { key, value: typeof last === "object" ? last.error : value, failed };
        if (last !== false) first ??= end;
        if (!failed) succeeded ??= end;
        else if (isTold(value)) told ??= { ...end, value };
        const isWhole = this.#endsWhole(command);
        const winner = isWhole ? (succeeded ?? told ?? first) : first;
        if (!winner || (isWhole && left > 0)) return;
        command.winner = winner;
        for (const [each, context] of contexts) if (each !== winner.key) context.abandon();
        const isLate = call === "timeout" && winner.key === "late";
        const hasFailed = (winner.failed || isLate) && { failed: true as const };
        const entry = { kind: "race" as const, op: command.path, winner: winner.key, ...hasFailed };
        command.work = { do: "record", entry, when: "resolved" };
      };
      for (const [key, context] of contexts) {
        const run = async () => (branches[key] as Branches[string])(context);
        run().then(
          (value) => ended(key, value, false),
          (error) => ended(key, error, true),
        );
      }
    };
    return this.#issue("race", name, prepare, { map });
  }

  spend(amount: number, { of }: { of: string }): Promise<Spent> {
    const { spending, pass, commands } = this.#parts;
    const spent = new Outcome<Spent>((resolve, reject) => {
      if (this.#isAbandoned) return;
      try {
        this.#refuse("spend", of, MAX_NAME);
        spending.add(of, amount);
      } catch (error) {
        return reject(pass.breaks((error as NondeterminismError).message));
      }
      spending.within(of, (limit, spent) => this.#root.#mayGrow(of, limit, spent)).then(resolve, reject);
    });
    spent.catch((error) => commands.failedSpends.push({ kind: "spend", path: of, failed: { error }, outcome: spent }));
    spent.isAwaited = false;
    return spent;
  }

  /** Asks in the function's own context, so that the question outlives an abandoned branch. */
  async #mayGrow(of: string, limit: number, { spent, limit: before }: Spent): Promise<boolean> {
    const message = `${this.jobName} has spent ${spent} ${of}, and may spend ${before}. May it spend up to ${limit}?`;
    const requestedSchema = { type: "object" as const, properties: {} };
    return (await this.ask(`${of} up to ${limit}`, { message, requestedSchema })).action === "accept";
  }

  get #root(): ExecutionContext {
    return this.#parent ? this.#parent.#root : this;
  }

  progress(done: number | string, total?: number, message?: string): void {
    outside(() => this.#parts.report.progress(done, total, message));
  }

  emit(value: unknown): Promise<void> {
    return this.#issue("emit", "emit", (command) => {
      this.#tell(command, keepable(value, "ctx.emit", MAX_OUTPUT));
    });
  }

  event(name: string, payload: unknown): Promise<void> {
    return this.#issue("emit", `event ${name}`, (command) => {
      const { events = [] } = this.#parts.runtime;
      const defined = events.find((event) => event.name === name);
      if (!defined) {
        const known = events.map((event) => event.name).join(", ") || "none";
        throw new NondeterminismError(`ctx.event: the definition has no event ${name}. Its events: ${known}`);
      }
      const kept = keepable(payload, "ctx.event", MAX_PAYLOAD);
      const { error } = outside(() => defined.payload.safeParse(kept));
      if (error) throw new NondeterminismError(`ctx.event("${name}"): its payload does not fit: ${error.message}`);
      this.#parts.commands.events += 1;
      this.#tell(command, { [EVENT]: name, payload: kept });
    });
  }

  /** Appends a partial result or an event to the outputs of the job. An output that has a number is always written. */
  #tell(command: Command, value: unknown): void {
    const { commands, lease } = this.#parts;
    commands.emitted += 1;
    const id = outputId(lease.id, commands.emitted);
    // The record holds the size of the output, which counts among the bytes that the job stores.
    const fn = async () => {
      const output = await lease.create(id, value, "resolved").catch(async (error) => {
        if (error instanceof RecordRefused) await lease.create(id, LEFT_OUT, "resolved");
        throw error;
      });
      return bytesIn(output.param);
    };
    commands.outputs.set(command, fn);
    command.work = { do: "attempt", fn, options: START_OPTIONS };
  }

  now(): number {
    this.#refuseInStep("now", "A step uses Date.now()");
    return this.#parts.pass.now();
  }

  random(): number {
    this.#refuseInStep("random", "Call it before the step");
    return seededNumber(...this.#draw());
  }

  uuid(): string {
    this.#refuseInStep("uuid", "Call it before the step");
    return seededUuid(...this.#draw());
  }

  /** The job's seed, and a text that no other call of the job has. */
  #draw(): [seed: string, of: string] {
    const { seed, jobName, startedAt } = this.#parts.runtime;
    this.#drawn += 1;
    return [seed ?? `${jobName} ${startedAt}`, `${this.#path}#${this.#drawn}`];
  }

  /** Refuses a call in a step, because its place among the calls would differ from pass to pass. */
  #refuseInStep(name: string, instead: string): void {
    const { pass } = this.#parts;
    if (!pass.isOpen) throw pass.breaks(`ctx.${name}() was called inside of a step, or ${AWAITED}. ${instead}`);
  }

  continueAs(args: unknown): Promise<never> {
    const { pass, commands, runtime } = this.#parts;
    try {
      this.#refuse("continueAs", "continueAs", MAX_NAME);
      const call = `ctx.continueAs${sourceLine()}`;
      if (this.#parent) throw new NondeterminismError(`${call}: an item or a branch cannot end the run. ${LAST}`);
      if (pass.next) throw new NondeterminismError(`${call} was called twice: the first ends the run. ${LAST}`);
      if (pass.isTold)
        throw new NondeterminismError(`${call}: the job was cancelled, or is late. Clean up, and return or throw`);
      const beside = [...commands.open].find(({ kind }) => kind !== "sleep" && kind !== "await");
      if (beside)
        throw new NondeterminismError(
          `${call}: ${beside.kind} "${beside.path}" is still open. Await it before. ${LAST}`,
        );
      const kept = storable(args, "ctx.continueAs");
      pass.next = { args: runtime.nextArgs ? outside(() => runtime.nextArgs?.(kept)) : kept };
      // Only sleeps and awaits are left, and nothing waits for them any more.
      for (const command of [...commands.open]) commands.close(command);
    } catch (error) {
      pass.breaks(error instanceof Error ? error.message : String(error));
    }
    return new Promise(() => {});
  }

  /** Closes this context and those inside of it: their outcomes are no longer used. */
  abandon(): void {
    this.#isClosed = true;
    const closed = this.#parts.commands.closeWithin(this.#path);
    // Listeners to the signals are not part of the function, so they run outside of windows.
    this.#parts.pass.afterwards(() => {
      for (const { abort } of closed) abort?.abort();
    });
  }

  get #isAbandoned(): boolean {
    let each: ExecutionContext | undefined = this;
    while (each && !each.#isClosed) each = each.#parent;
    return each !== undefined;
  }

  #within(key: string): ExecutionContext {
    return new ExecutionContext(this.#parts, this, `${this.#path}${escaped(key)}/`);
  }

  /** Adds the keys of the items that were given up to the error of a failed item, and logs their number. */
  #saysGivenUp({ path }: Command, error: unknown, left: readonly string[]): void {
    if (left.length === 0) return;
    const reason = error instanceof Error ? error.message : String(error);
    this.#parts.runtime.log.warn("items given up", { all: path, given_up: left.length, reason });
    // An error that passes through several `ctx.all` keeps the list of the innermost.
    if (error instanceof Error && !Object.hasOwn(error, "givenUp"))
      Reflect.defineProperty(error, "givenUp", { value: left });
  }

  /** Checks rule 2 when a function that was handed a context has ended. */
  #ended(what: string): void {
    if (!this.#parts.pass.isOpen && !this.#isAbandoned) this.#parts.pass.breaks(`${what} ended ${AWAITED}`);
  }

  /** Whether a group ends with its last item or branch: it was open when the function was told to end. */
  #endsWhole({ window }: Pick<Command, "window">): boolean {
    return window < (this.#parts.pass.told?.window ?? 0);
  }

  /** Settles a command without a record. */
  #settle(command: Command, settle: () => void): void {
    if (command.isOver) return;
    this.#parts.commands.close(command);
    settle();
  }

  /** `map` turns the outcome into the value that the function gets, or throws the error that it gets. */
  #issue<T, Given = never>(
    kind: CommandKind,
    name: string,
    prepare: (command: Command) => void,
    {
      longest = kind === "await" ? MAX_AWAITED : MAX_NAME,
      map,
    }: { longest?: number; map?: ((given: Given) => T) | undefined } = {},
  ): Promise<T> {
    const { commands, pass } = this.#parts;
    let command: Command | undefined;
    const given = new Outcome<unknown>((resolve, reject) => {
      // In an abandoned branch or item the promise never settles; it goes away with the execution.
      if (this.#isAbandoned) return;
      try {
        this.#refuse(kind, name, longest);
        const { window, cause } = pass;
        command = commands.add({ kind, name, within: this.#path, window, cause, resolve, reject });
        prepare(command);
      } catch (error) {
        if (command) commands.close(command);
        reject(error instanceof NondeterminismError ? pass.breaks(error.message) : error);
      }
    });
    const outcome = map ? mapped(given, map as (given: unknown) => T) : given;
    // A rejection that nothing awaits must not end the process, which runs other jobs as well.
    outcome.catch((error) => {
      if (command) command.failed = { error };
    });
    outcome.isAwaited = false;
    if (command) command.outcome = outcome;
    return outcome as Promise<T>;
  }

  /** Checks the name and the limit of calls, and rules 2 and 3. */
  #refuse(kind: CommandKind | "spend" | "continueAs", name: string, most: number): void {
    if (typeof name !== "string" || name === "" || name.length > most) {
      const got =
        typeof name === "string"
          ? `has ${name.length}: "${name.slice(0, 60)}${name.length > 60 ? "…" : ""}"`
          : `is ${typeof name}`;
      throw new NondeterminismError(
        `ctx.${kind}: its name must be a text of 1 to ${most} characters, and ${got}${sourceLine()}. Shorten it, with hashed(value) for example`,
      );
    }
    const { commands, pass, runtime } = this.#parts;
    if (commands.count === runtime.mostCalls) {
      throw new NondeterminismError(
        `ctx.${kind}("${name}")${sourceLine()} comes after ${commands.count} calls of ctx: ${ENDLESS}`,
      );
    }
    if (pass.isOpen) return;
    const running = [...commands.open].filter(({ isRunning }) => isRunning);
    const paths = running.slice(0, 3).map(({ path }) => `"${path}"`);
    const inside = paths.length > 0 ? `inside of a step (${paths.join(", ")}), or ` : "";
    throw new NondeterminismError(
      `ctx.${kind}("${name}") was called ${inside}${AWAITED}. A step works with what it is handed${sourceLine("; it was called")}`,
    );
  }
}

/** The methods may be taken out of a context and called alone: `const { step } = ctx`. */
const METHODS = Object.entries(Object.getOwnPropertyDescriptors(ExecutionContext.prototype)).flatMap(
  ([name, { value }]): [string, (...args: never) => unknown][] =>
    typeof value === "function" && name !== "constructor" ? [[name, value]] : [],
);

/**
 * As `given.then(map)`, and takes as many microtasks. A cancellation rejects several calls at once, and in stored journals the
 * order of the function's next calls follows from that number.
 */
function mapped<T>(given: Promise<unknown>, map: (value: unknown) => T): Outcome<T> {
  return new Outcome((resolve, reject) => {
    given.then((value) => {
      try {
        resolve(map(value));
      } catch (error) {
        reject(error);
      }
    }, reject);
  });
}

/** Refuses a promise in place of a function: the request behind it would be made again in each replay. */
function mustBeCalled({ kind, name }: Command, fn: unknown): void {
  if (typeof fn === "function") return;
  const got = fn instanceof Promise ? "a promise" : `${typeof fn}`;
  throw new NondeterminismError(`ctx.${kind}("${name}") takes a function that does it, and got ${got}: write () => …`);
}

function plainKey(item: unknown): string {
  if (typeof item === "string" || typeof item === "number") return String(item);
  throw new NondeterminismError("ctx.all: items other than strings and numbers need a key: { key: (item) => … }");
}

/** The stored form of a value to emit. @throws {NondeterminismError} if JSON cannot hold it, or it is too long */
function keepable(value: unknown, call: "ctx.emit" | "ctx.event", most: number): unknown {
  const kept = storable(value, `${call}: its value`);
  const size = JSON.stringify(kept)?.length;
  if (size !== undefined && size <= most) return kept;
  const got = size === undefined ? "nothing" : `${size} characters of JSON`;
  throw new NondeterminismError(`${call} takes a value of up to ${most} characters of JSON, and got ${got}`);
}
