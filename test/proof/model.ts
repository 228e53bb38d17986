/**
 * A model of the engine's guarantees, without records, deaths or time: it runs a tree of calls once, with outcomes in a given
 * order.
 */
import { BudgetExceeded, JobCancelled, type Spent, type StepOptions } from "../../core/author/context.ts";
import { fromStored, isFinal, type StoredError, storable, toStored } from "../../core/author/values.ts";
import { seededNumber, seededUuid } from "../../core/engine/guard/seeded.ts";
import { BUDGET, type ContextCalls, type ProgramTree, runTree, type TreeResult } from "./program.ts";

type TreeEnd = { value: unknown } | { error: StoredError };

/** Stands for the job's cancellation in a list of paths. */
export const CANCELLED = "";

/** The initial state of a run. */
export interface Beginning {
  seed: string;
  seen: number;
  /** The amounts that earlier runs have spent, and the limits. */
  accounts: Accounts;
  /** The job's generation, counted from 1, and the step results by path that it takes over from the one before. */
  attempt: number;
  kept: ReadonlyMap<string, unknown>;
}

type Accounts = Record<string, { spent: number; limit: number }>;

export const anew = (): Beginning => ({ seed: "", seen: 1, accounts: {}, attempt: 1, kept: new Map() });

interface Open {
  path: string;
  reject(error: unknown): void;
  settle(): Promise<void>;
  isReady(): boolean;
  isGroup: boolean;
  isShielded: boolean;
}

/** How a call waits for its outcome. */
interface OpenOptions {
  isReady?(): boolean;
  isGroup?: boolean;
  isShielded: boolean;
}

export interface Modelled {
  /** The outcome of the function; undefined if it has not ended. */
  end: { value: unknown; seen: number } | { error: StoredError } | undefined;
  accounts: Accounts;
  /** The paths of the commands that were called after a failure. */
  afterFailure: Set<string>;
  isCancelled: boolean;
  /** Whether the function had not ended when its job was cancelled. What it left in the background may end later. */
  isInterrupted: boolean;
  /** The outcome of each step, by its path. */
  steps: Map<string, TreeEnd>;
  /** An impossible event: an outcome for a call that was not made. */
  problem?: string;
}

/** Answers, callbacks and jobs have the same outcomes in the model and in the engine. */
export const answerTo = (name: string) =>
  name.startsWith("denied up to") ? { action: "decline" } : { action: "accept", content: { to: name } };
export const sentTo = (path: string) => (/ never(#\d+)?$/.test(path) ? undefined : { sent: path });
export const jobOf = (name: string): TreeEnd =>
  /^bad/.test(name) ? { error: { name: "JobFailed", message: "it is bad" } } : { value: [name, 1] };

/** A clean-up starts jobs of its own: one that the function has started ends with a cancellation. */
export const jobIn = (job: string, isCleanUp: boolean): string => (isCleanUp ? `${job} of a clean-up` : job);

/** Runs a tree with outcomes in the order of `paths`. */
export async function modelInOrder(
  program: ProgramTree,
  paths: readonly string[],
  beginning: Beginning,
): Promise<Modelled> {
  const model = new Model(program, beginning);
  await model.begin();
  for (const path of paths) {
    const problem = await model.settle(path);
    if (problem) return { ...model.result, problem };
  }
  const { result, unstorable } = model;
  // The function has undone what it had to, and the job fails nevertheless.
  return unstorable && result.end && "value" in result.end ? { ...result, end: { error: unstorable } } : result;
}

/** The calls of each name in each context, in their order when outcomes come in an order that `random` chooses. */
export async function callsInOrder(program: ProgramTree, random: () => number): Promise<Map<string, string[]>> {
  // Without shared state, the values that a flow has seen distinguish its calls from those of other flows.
  const model = new Model({ ...program, shares: false }, anew(), true);
  await model.begin();
  for (let ready = model.ready(); ready.length > 0 && !model.result.end; ready = model.ready()) {
    await model.settle(ready[Math.floor(random() * ready.length)] as string);
  }
  return model.called;
}

class Model {
  readonly #open = new Map<string, Open>();
  readonly #program: ProgramTree;
  readonly called = new Map<string, string[]>();
  readonly result: Modelled;
  /** The error of the first value that reached the function and could not be stored. */
  unstorable: StoredError | undefined;
  readonly beginning: Beginning;
  /** Whether values that depend on the number of earlier calls are replaced by constants. */
  readonly isUncounted: boolean;
  readonly #asked = new Map<string, Promise<void>>();
  readonly #refused = new Set<string>();
  #hasFailed = false;
  readonly undos: { name: string; fn(): unknown }[] = [];
  /** Whether the function has ended, so that only its undos run. */
  isUndoing = false;

  constructor(program: ProgramTree, beginning: Beginning, isUncounted = false) {
    this.#program = program;
    this.beginning = beginning;
    this.isUncounted = isUncounted;
    const accounts = structuredClone(beginning.accounts);
    this.result = {
      end: undefined,
      steps: new Map(),
      accounts,
      afterFailure: new Set(),
      isCancelled: false,
      isInterrupted: false,
    };
  }

  async begin(): Promise<void> {
    const machine = {
      attempt: this.beginning.attempt,
      pause: async () => {},
      // The engine refuses the function if such a wait ends in time.
      outside: () => new Promise<void>(() => {}),
      now: () => Number.POSITIVE_INFINITY,
      speed: () => 1,
      onCall: (calls: ContextCalls, name: string, what: string) => (calls as Scope).noted(name, what),
    };
    runTree(this.#program, new Scope(this, ""), machine, this.beginning.seen).then(
      ({ value, seen }: TreeResult) => {
        const failure = this.result.isCancelled ? new JobCancelled([]) : this.unstorable && fromStored(this.unstorable);
        if (failure && this.undos.length > 0) void this.#fail(failure);
        else this.result.end ??= { value: stored(value), seen };
      },
      (error) => void this.#fail(error),
    );
    await drained();
  }

  /** Ends the function without a result, after what it has done is undone. */
  async #fail(error: unknown): Promise<void> {
    this.isUndoing ||= this.undos.length > 0;
    if (this.isUndoing) this.#open.clear();
    const path = pathsWithin("undo/");
    for (let undo = this.undos.pop(); undo; undo = this.undos.pop()) {
      const { fn } = undo;
      const name = path(encodeURIComponent(undo.name).replaceAll("%20", " "));
      await this.open(
        name,
        async () => {
          const settled = { value: stored(fn()) };
          this.result.steps.set(name, settled);
          return settled;
        },
        { isShielded: true },
      );
    }
    this.result.end ??= { error: toStored(error) };
  }

  /** Adds to the spent amount. If the limit is exceeded, one question serves all calls that wait for it. */
  async spend(amount: number, of: keyof typeof BUDGET): Promise<Spent> {
    const { limit: base, ...budget } = BUDGET[of];
    const account = this.result.accounts[of] ?? { spent: 0, limit: base };
    this.result.accounts[of] = account;
    account.spent += amount;
    const spent = (): Spent =>
      this.isUncounted
        ? { spent: 0, left: 0, limit: 0 }
        : { ...account, left: Math.max(account.limit - account.spent, 0) };
    while (account.spent > account.limit) {
      if (!("onExceeded" in budget)) throw new BudgetExceeded(of, spent());
      if (this.#refused.has(of)) throw new BudgetExceeded(of, spent(), "more was not allowed");
      const asked = this.#asked.get(of) ?? this.#askFor(of, account, base);
      this.#asked.set(of, asked);
      await asked;
    }
    return spent();
  }

  async #askFor(of: string, account: { spent: number; limit: number }, base: number): Promise<void> {
    const limit = Math.ceil(account.spent / base) * base;
    const path = `${of} up to ${limit}`;
    let isAllowed = false;
    try {
      const outcome = async () => ({ value: answerTo(path) });
      const answer = (await this.open(path, outcome, { isShielded: false })) as { action: string };
      isAllowed = answer.action === "accept";
    } finally {
      if (!isAllowed) this.#refused.add(of);
      this.#asked.delete(of);
    }
    if (isAllowed) account.limit = limit;
  }

  ready(): string[] {
    return [...this.#open.values()].filter((open) => open.isReady()).map(({ path }) => path);
  }

  async settle(path: string): Promise<string | undefined> {
    if (path === CANCELLED) return this.#cancel();
    const open = this.#open.get(path);
    if (!open) return `"${path}" had not been called, or had ended`;
    if (!open.isReady()) return `the race "${path}" had no winner`;
    this.#open.delete(path);
    await open.settle();
    await drained();
    return undefined;
  }

  /** Begins a group. Returns whether it ends with its last branch, because it was open when the job was cancelled. */
  group(isShielded: boolean): () => boolean {
    const isBefore = !this.result.isCancelled && !isShielded;
    return () => isBefore && this.result.isCancelled;
  }

  /** Rejects all open calls, as the job's cancellation does. */
  async #cancel(): Promise<undefined> {
    this.result.isCancelled = true;
    this.result.isInterrupted = this.result.end === undefined;
    const hasReturned = this.result.end !== undefined && "value" in this.result.end;
    if (hasReturned && this.undos.length > 0) {
      this.result.end = undefined;
      void this.#fail(new JobCancelled([]));
    }
    const open = [...this.#open.values()].filter(({ isGroup, isShielded }) => !isGroup && !isShielded);
    for (const { path } of open) this.#open.delete(path);
    for (const { reject } of open) reject(new JobCancelled([]));
    await drained();
  }

  open(
    path: string,
    outcome: () => Promise<TreeEnd | { thrown: unknown }>,
    { isReady = () => true, isGroup = false, isShielded }: OpenOptions,
  ): Promise<unknown> {
    if (this.result.isCancelled && !isShielded) return Promise.reject(new JobCancelled([]));
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    promise.catch(() => {});
    const settle = async () => {
      const settled = await outcome();
      if (!("value" in settled)) this.#hasFailed = true;
      if ("thrown" in settled) reject(settled.thrown);
      else if ("error" in settled) {
        if (settled.error.name === "NondeterminismError") this.unstorable ??= settled.error;
        reject(fromStored(settled.error));
      } else resolve(settled.value);
    };
    if (this.#hasFailed) this.result.afterFailure.add(path);
    this.#open.set(path, { path, settle, reject, isReady, isGroup, isShielded });
    return promise;
  }
}

/** The end of a branch of a race. */
interface BranchEnd {
  winner: string;
  promise: Promise<unknown>;
}

class Scope implements ContextCalls {
  readonly #model: Model;
  readonly #prefix: string;
  readonly #path: (name: string) => string;
  /** Whether it belongs to a branch or an item that was given up: its calls never settle. */
  readonly #isGivenUp: () => boolean;
  readonly #isShielded: boolean;
  #drawn = 0;

  constructor(model: Model, prefix: string, isGivenUp = () => model.isUndoing, isShielded = false) {
    this.#model = model;
    this.#isShielded = isShielded;
    this.#prefix = prefix;
    this.#path = pathsWithin(prefix);
    this.#isGivenUp = isGivenUp;
  }

  noted(name: string, what: string): void {
    const key = `${this.#prefix}|${name}`;
    this.#model.called.set(key, [...(this.#model.called.get(key) ?? []), what]);
  }

  /** Whether a call throws the cancellation again. */
  get #isRefused(): boolean {
    return this.#model.result.isCancelled && !this.#isShielded;
  }

  #opened(path: string, outcome: Parameters<Model["open"]>[1], options: Partial<OpenOptions> = {}): Promise<unknown> {
    if (this.#isGivenUp()) return never();
    return this.#model.open(path, outcome, { ...options, isShielded: this.#isShielded });
  }

  async cleanup(name: string, fn: (calls: ContextCalls) => Promise<unknown>): Promise<unknown> {
    if (this.#isGivenUp()) return never();
    try {
      return await fn(new Scope(this.#model, `${this.#path(name)}/`, this.#isGivenUp, true));
    } finally {
      if (this.#isGivenUp()) await never();
    }
  }

  onUndo(name: string, fn: () => unknown): void {
    if (this.#isGivenUp()) return;
    if (this.#isRefused) throw new JobCancelled([]);
    this.#model.undos.push({ name: this.#prefix + name, fn });
  }

  step(name: string, fn: (step: { attempt: number }) => unknown, options: StepOptions = {}): Promise<unknown> {
    const path = this.#path(name);
    const { kept } = this.#model.beginning;
    return this.#opened(path, async () => {
      const settled = kept.has(path) ? { value: kept.get(path) } : await attempts(path, fn, options);
      this.#model.result.steps.set(path, structuredClone(settled));
      return settled;
    });
  }

  emit(): Promise<unknown> {
    return this.#opened(this.#path("emit"), async () => ({ value: undefined }));
  }

  callback(name: string, within: number | undefined): Promise<unknown> {
    const path = this.#path(name);
    const message = `nothing was sent to the callback "${path}" in time`;
    return this.#opened(path, async () =>
      within === undefined ? { value: sentTo(path) } : { error: { name: "TimeoutError", message } },
    );
  }

  spend(amount: number, of: keyof typeof BUDGET): Promise<Spent> {
    if (this.#isGivenUp()) return never();
    return this.#isRefused ? Promise.reject(new JobCancelled([])) : this.#model.spend(amount, of);
  }

  random(): number {
    return seededNumber(this.#model.beginning.seed, this.#draw());
  }

  uuid(): string {
    return seededUuid(this.#model.beginning.seed, this.#draw());
  }

  #draw(): string {
    if (!this.#model.isUncounted) this.#drawn += 1;
    return `${this.#prefix}#${this.#drawn}`;
  }

  sleep(name: string): Promise<unknown> {
    return this.#opened(this.#path(name), async () => ({ value: undefined }));
  }

  ask(name: string): Promise<unknown> {
    const path = this.#path(name);
    return this.#opened(path, async () => ({ value: answerTo(path) }));
  }

  start(job: string, name: string): Promise<string> {
    return this.#opened(this.#path(name), async () => ({ value: jobIn(job, this.#isShielded) })) as Promise<string>;
  }

  await(job: string): Promise<unknown> {
    return this.#opened(this.#path(job), async () => jobOf(job));
  }

  until(name: string, _every: number, lasting: number | undefined, check: () => unknown): Promise<unknown> {
    const path = this.#path(name);
    return this.#opened(path, async () => {
      const value = check();
      if (value) return { value: stored(value) };
      const message = `"${path}" did not come about within ${lasting} milliseconds`;
      return { error: { name: "NonRetryableError", message } };
    });
  }

  async all(
    name: string,
    count: number,
    concurrency: number,
    fn: (calls: ContextCalls, i: number) => Promise<unknown>,
  ) {
    if (this.#isGivenUp()) return never();
    if (this.#isRefused) throw new JobCancelled([]);
    const path = this.#path(name);
    let isOver = false;
    const isGivenUp = () => isOver || this.#isGivenUp();
    const scopes = Array.from(
      { length: count },
      (_, i) => new Scope(this.#model, `${path}/${i}/`, isGivenUp, this.#isShielded),
    );
    const endsWhole = this.#model.group(this.#isShielded);
    const results: unknown[] = [];
    let next = 0;
    let failed: { error: unknown } | undefined;
    const lane = async () => {
      for (let i = next++; i < count && !failed; i = next++) {
        try {
          results[i] = await fn(scopes[i] as Scope, i);
        } catch (error) {
          if (!endsWhole()) throw error;
          failed ??= { error };
        }
      }
    };
    try {
      await Promise.all(Array.from({ length: Math.min(concurrency, count) }, lane));
      if (failed) throw (failed as { error: unknown }).error;
      return this.#isGivenUp() ? never() : results;
    } catch (error) {
      if (this.#isGivenUp()) return never();
      isOver = true;
      throw error;
    }
  }

  race(name: string, branches: Record<string, (calls: ContextCalls) => Promise<unknown>>): Promise<unknown> {
    if (this.#isGivenUp()) return never();
    if (this.#isRefused) return Promise.reject(new JobCancelled([]));
    const path = this.#path(name);
    const endsWhole = this.#model.group(this.#isShielded);
    let left = Object.keys(branches).length;
    let won: BranchEnd | undefined;
    let first: BranchEnd | undefined;
    let succeeded: BranchEnd | undefined;
    let told: BranchEnd | undefined;
    for (const [winner, branch] of Object.entries(branches)) {
      const isGivenUp = () => (won !== undefined && won.winner !== winner) || this.#isGivenUp();
      const scope = new Scope(this.#model, `${path}/${winner}/`, isGivenUp, this.#isShielded);
      const promise = (async () => branch(scope))();
      const end = { winner, promise };
      const over = () => {
        left -= 1;
        first ??= end;
        if (!endsWhole()) won ??= first;
        else if (left === 0) won ??= succeeded ?? told ?? first;
      };
      promise.then(
        () => {
          succeeded ??= end;
          over();
        },
        (error) => {
          if (error instanceof JobCancelled) told ??= end;
          over();
        },
      );
    }
    const outcome = async () => {
      try {
        return { value: { winner: won?.winner, value: await won?.promise } };
      } catch (thrown) {
        return { thrown };
      }
    };
    return this.#opened(path, outcome, { isReady: () => won !== undefined, isGroup: true });
  }
}

/** Returns a function that makes the paths of calls in one context from their names; repeated names get a number from 2 on. */
export function pathsWithin(prefix: string): (name: string) => string {
  const names = new Map<string, number>();
  return (name) => {
    const count = (names.get(name) ?? 0) + 1;
    names.set(name, count);
    return `${prefix}${name}${count === 1 ? "" : `#${count}`}`;
  };
}

async function attempts(
  path: string,
  fn: (step: { attempt: number }) => unknown,
  { retry }: StepOptions,
): Promise<TreeEnd> {
  for (let attempt = 1; ; attempt++) {
    try {
      return { value: storable(await fn({ attempt }), `step "${path}"`) };
    } catch (error) {
      const isLast = retry === false || attempt >= (retry?.maxAttempts ?? 10) || isFinal(error);
      if (isLast) return { error: toStored(error, isFinal(error) ? undefined : attempt) };
    }
  }
}

export const stored = (value: unknown): unknown =>
  value === undefined ? undefined : JSON.parse(JSON.stringify(value));

const never = () => new Promise<never>(() => {});

const drained = () => new Promise<void>((resolve) => setImmediate(resolve));
