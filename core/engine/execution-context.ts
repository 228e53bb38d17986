/** A context: the function's own, or that of an item or a branch. What its calls do is in `replay.ts` and `work.ts`. */
import {
  type Answer,
  type Context,
  DAY,
  type Log,
  type Metrics,
  type Question,
  RuleBroken,
  SECOND,
  type Startable,
  type Step,
  type StepOptions,
} from "../definitions/context.ts";
import { type Command, type CommandKind, comesAfter, escaped } from "./command.ts";
import { AWAITED } from "./determinism.ts";
import type { Execution } from "./execution.ts";
import { performLooks, performStep } from "./steps.ts";

/** The longest name of a call, in UTF-16 code units; other jobs that are awaited have names of their own making. */
const MAX_NAME = 200;
const MAX_AWAITED = 1_000;

/** A step that only asks the Resonate server is tried for as long as the job may run. */
const UNTIL_DONE: StepOptions = { retry: { for: 366 * DAY, longest: 5 * SECOND } };

type Branches = Record<string, (ctx: Context) => Promise<unknown>>;

/** What may be taken out of a context and called by itself: `const { step } = ctx`. */
const METHODS = ["step", "start", "sleep", "ask", "await", "until", "all", "race", "progress"] as const;

export class ExecutionContext implements Context {
  readonly #pass: Execution;
  readonly #path: string;
  readonly #open = new Set<Command>();
  /** By name: how often it was called, the last of those calls, and those that wait for their outcome. */
  readonly #names = new Map<string, { count: number; last: Command; open: Set<Command> }>();
  readonly #children: ExecutionContext[] = [];
  /** Both are made when the signal is asked for. */
  #abort: AbortController | undefined;
  #signal: AbortSignal | undefined;
  #isAbandoned = false;

  constructor(pass: Execution, parent: ExecutionContext | undefined, path: string) {
    this.#pass = pass;
    this.#path = path;
    if (parent) parent.#children.push(this);
    for (const method of METHODS) this[method] = this[method].bind(this) as never;
  }

  get jobName(): string {
    return this.#pass.around.jobName;
  }

  get deadline(): number {
    return this.#pass.around.deadline;
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#isAbandoned) this.#abort.abort();
    this.#signal ??= AbortSignal.any([this.#abort.signal, this.#pass.signal]);
    return this.#signal;
  }

  get env(): unknown {
    return this.#pass.around.env;
  }

  get log(): Log {
    return this.#pass.log;
  }

  get metrics(): Metrics {
    return this.#pass.metrics;
  }

  step<T>(name: string, fn: (step: Step) => T | Promise<T>, options: StepOptions = {}): Promise<T> {
    return this.#call("step", name, (op) => {
      mustBeCalled(op, fn);
      op.perform = () => performStep(this.#pass, op, fn, options);
    });
  }

  start<Args>(job: Startable<Args>, args: Args, { name }: { name?: string } = {}): Promise<string> {
    return this.#call("start", name ?? `start ${job?.kind}`, (op) => {
      if (typeof job?.args?.parse !== "function") {
        throw new RuleBroken("ctx.start takes a definition, as durableTool and defineJob make it, and its arguments");
      }
      op.perform = () => performStep(this.#pass, op, () => this.#pass.around.start(job, args), UNTIL_DONE);
    });
  }

  sleep(name: string, until: number | Date): Promise<void> {
    return this.#call("sleep", name, (op) => {
      const due = typeof until === "number" ? this.#pass.clock.now() + until : Number(until?.getTime?.());
      if (!Number.isFinite(due)) {
        throw new RuleBroken(`ctx.sleep("${name}"): until is ${until}; it takes milliseconds or a Date`);
      }
      op.perform = () => this.#pass.record(op, { kind: "sleep", op: op.path }, { due: Math.ceil(Math.max(due, 0)) });
    });
  }

  ask(name: string, question: Question): Promise<Answer> {
    return this.#call("ask", name, (op) => {
      const { type, properties } = question?.requestedSchema ?? {};
      if (typeof question?.message !== "string" || type !== "object" || typeof properties !== "object") {
        const form = 'requestedSchema: { type: "object", properties: { … } }';
        throw new RuleBroken(`ctx.ask("${name}") takes { message: "…", ${form} }`);
      }
      op.question = question;
      const { askedBefore } = this.#pass.around;
      const record = async (promise?: string) =>
        promise === undefined
          ? this.#pass.record(op, { kind: "ask", op: op.path, question }, "open")
          : this.#pass.record(op, { kind: "ask", op: op.path, question, promise });
      op.perform = askedBefore ? async () => record(await askedBefore(question)) : record;
    });
  }

  await<T>(jobName: string): Promise<T> {
    return this.#call("await", jobName, () => {});
  }

  until<T>(
    name: string,
    options: { every: number; for?: number },
    check: (look: Step) => T | Promise<T>,
  ): Promise<Exclude<T, false | null | undefined | 0 | "">> {
    return this.#call("until", name, (op) => {
      mustBeCalled(op, check);
      if (!(options.every >= 1)) {
        throw new RuleBroken(`ctx.until("${name}"): every is ${options.every}; it takes milliseconds, 1 or more`);
      }
      op.perform = () => performLooks(this.#pass, op, options, check);
    });
  }

  all<Item, T>(
    items: readonly Item[],
    fn: (ctx: Context, item: Item, index: number) => Promise<T>,
    options: { name?: string; key?: (item: Item, index: number) => string | number; concurrency?: number } = {},
  ): Promise<T[]> {
    const { name = "all", key = plainKey, concurrency = Number.POSITIVE_INFINITY } = options;
    return this.#call("all", name, (op) => {
      if (!Array.isArray(items) || typeof fn !== "function") {
        throw new RuleBroken("ctx.all takes a list and what is done for each: ctx.all(items, async (ctx, item) => …)");
      }
      if (!(concurrency >= 1)) throw new RuleBroken(`ctx.all: concurrency is ${concurrency}; it takes 1 or more`);
      const keys = items.map((item, i) => String(key(item, i)));
      const twice = keys.length - new Set(keys).size;
      if (twice > 0) {
        const one = keys.find((each, i) => keys.indexOf(each) !== i);
        throw new RuleBroken(`ctx.all: two items have the key "${one}". Give each its own: { key: (item) => … }`);
      }
      const scopes = keys.map((each) => this.#child(op, each));
      const results: T[] = new Array(items.length);
      let next = 0;
      const lane = async () => {
        for (let i = next++; i < items.length; i = next++) {
          results[i] = await fn(scopes[i] as Context, items[i] as Item, i);
          (scopes[i] as ExecutionContext).ended(`ctx.all: the function of item "${keys[i]}"`);
        }
      };
      const lanes = Array.from({ length: Math.min(concurrency, items.length) }, lane);
      Promise.all(lanes).then(
        () => this.#closeWith(op, () => op.resolve(results)),
        (error) => {
          this.ended("ctx.all: the function of an item");
          for (const scope of scopes) scope.abandon();
          this.#closeWith(op, () => op.reject(error));
        },
      );
    });
  }

  race<B extends Branches>(
    branches: B,
    { name = "race" }: { name?: string } = {},
  ): Promise<{ [K in keyof B]: { winner: K; value: Awaited<ReturnType<B[K]>> } }[keyof B]> {
    return this.#call("race", name, (op) => {
      if (!Object.values(branches ?? {}).every((branch) => typeof branch === "function")) {
        throw new RuleBroken("ctx.race takes a function for each branch: ctx.race({ a: (ctx) => …, b: (ctx) => … })");
      }
      const scopes = new Map(Object.keys(branches).map((key) => [key, this.#child(op, key)]));
      if (scopes.size === 0) throw new RuleBroken("ctx.race: it has no branches");
      const ended = (key: string, value: unknown, failed: boolean) => {
        if (op.winner || op.isOver) return;
        this.ended(`ctx.race: the branch "${key}"`);
        op.winner = { key, value, failed };
        for (const [each, scope] of scopes) if (each !== key) scope.abandon();
        op.perform = () => this.#pass.record(op, { kind: "race", op: op.path, winner: key });
      };
      for (const [key, scope] of scopes) {
        const run = async () => (branches[key] as Branches[string])(scope);
        run().then(
          (value) => ended(key, value, false),
          (error) => ended(key, error, true),
        );
      }
    });
  }

  progress(done: number | string, total?: number, message?: string): void {
    if (typeof done === "string") this.#pass.tell({ message: done });
    else this.#pass.tell({ done, ...(total !== undefined && { total }), ...(message !== undefined && { message }) });
  }

  /** A function that was handed a context has ended: rule 2. */
  ended(what: string): void {
    if (!this.#pass.isOpen && !this.#isAbandoned) this.#pass.breaks(`${what} ended ${AWAITED}`);
  }

  /** The outcome of a call reaches the function. */
  close(op: Command): void {
    op.isOver = true;
    this.#open.delete(op);
    this.#names.get(op.name)?.open.delete(op);
    this.#pass.closed(op);
  }

  /** Nothing in this context matters any more. */
  abandon(): void {
    if (this.#isAbandoned) return;
    this.#isAbandoned = true;
    for (const op of this.#open) {
      op.isOver = true;
      this.#pass.closed(op);
    }
    // What listens to it is no part of the function: it runs outside of windows.
    const open = [...this.#open];
    this.#pass.afterwards(() => {
      for (const { abort } of open) abort?.abort();
      this.#abort?.abort();
    });
    for (const child of this.#children) child.abandon();
  }

  #child(op: Command, key: string): ExecutionContext {
    return new ExecutionContext(this.#pass, this, `${op.path}/${escaped(key)}/`);
  }

  #closeWith(op: Command, settle: () => void): void {
    if (op.isOver) return;
    this.close(op);
    settle();
  }

  #call<T>(kind: CommandKind, name: string, prepare: (op: Command) => void): Promise<T> {
    const promise = new Promise<unknown>((resolve, reject) => {
      let op: Command | undefined;
      try {
        // A branch that lost, or an item after another has failed: it waits for ever, and is forgotten with the pass.
        if (this.#isAbandoned) return;
        this.#refuse(kind, name);
        const { window, cause } = this.#pass;
        const count = this.#count(kind, name);
        const path = `${this.#path}${escaped(name)}${count === 1 ? "" : `#${count}`}`;
        const fresh = { attempts: 0, failingSince: 0, runningSince: 0, isRunning: false, isOver: false };
        op = { kind, name, path, scope: this, window, cause, resolve, reject, ...fresh };
        this.#names.set(name, { count, last: op, open: (this.#names.get(name)?.open ?? new Set()).add(op) });
        this.#open.add(op);
        this.#pass.called(op);
        prepare(op);
      } catch (error) {
        if (op) this.close(op);
        reject(error instanceof RuleBroken ? this.#pass.breaks(error.message) : error);
      }
    });
    // What nobody awaits must not end the process that runs the others.
    promise.catch(() => {});
    return promise as Promise<T>;
  }

  /** Rules 2 and 3. */
  #refuse(kind: CommandKind, name: string): void {
    const most = kind === "await" ? MAX_AWAITED : MAX_NAME;
    if (typeof name !== "string" || name === "" || name.length > most) {
      throw new RuleBroken(`ctx.${kind}: its name must be a text of 1 to ${most} characters`);
    }
    if (this.#pass.isOpen) return;
    const running = this.#pass.running.map(({ path }) => `"${path}"`).slice(0, 3);
    const inside = running.length > 0 ? `inside of a step (${running.join(", ")}), or ` : "";
    throw new RuleBroken(`ctx.${kind}("${name}") was called ${inside}${AWAITED}. A step works with what it is handed`);
  }

  /** Rule 4: which call of its name it is; refused where that could come out differently. */
  #count(kind: CommandKind, name: string): number {
    const known = this.#names.get(name);
    if (!known) return 1;
    const { window, cause } = this.#pass;
    const [waiting] = known.open; // the oldest: calls are in the set in their order
    const isUnsure = (waiting && waiting.window < window) || !comesAfter(known.last, window, cause);
    // Awaits of one job are all the same.
    if (isUnsure && kind !== "await") {
      throw new RuleBroken(
        `"${name}" is called twice in an order that depends on what ends first. Give each call a name of its own, or use ctx.all(items, async (ctx, item) => …), in which each item has a context of its own`,
      );
    }
    return known.count + 1;
  }
}

/** A request that is made where it is handed over is made again in each replay: it is the function that is handed over. */
function mustBeCalled({ kind, name }: Command, fn: unknown): void {
  if (typeof fn === "function") return;
  const got = fn instanceof Promise ? "a promise" : `${typeof fn}`;
  throw new RuleBroken(`ctx.${kind}("${name}") takes a function that does it, and got ${got}: write () => …`);
}

function plainKey(item: unknown): string {
  if (typeof item === "string" || typeof item === "number") return String(item);
  throw new RuleBroken("ctx.all: items that are no strings or numbers need a key: { key: (item) => … }");
}
