/**
 * What the engine promises, without records, deaths or time: a tree of calls run once, in which outcomes come in an order
 * that is given.
 */
import { NonRetryableError, type StepOptions } from "../../core/definitions/context.ts";
import { seededNumber, seededUuid } from "../../core/engine/guard/seeded.ts";
import { fromStored, isFinal, type StoredError, toStored } from "../../core/engine/values.ts";
import { SEED } from "../simulation/simulated-job.ts";
import { type ContextCalls, type ProgramTree, runTree } from "./program.ts";

export type TreeEnd = { value: unknown } | { error: StoredError };

interface Open {
  path: string;
  settle(): Promise<void>;
  isReady(): boolean;
}

export interface Modelled {
  /** What came of the function; undefined when it has not ended. */
  end: TreeEnd | undefined;
  /** What came of each step, by its path. */
  steps: Map<string, TreeEnd>;
  /** What cannot be: an outcome for a call that was not made. */
  problem?: string;
}

/** Answers and jobs are what they are under every model and engine. */
export const answerTo = (name: string) => ({ action: "accept", content: { to: name } });
export const jobOf = (name: string): TreeEnd =>
  name === "bad" ? { error: { name: "JobFailed", message: "it is bad" } } : { value: [name, 1] };

/** Runs a tree with outcomes in the order of `paths`. */
export async function modelInOrder(program: ProgramTree, paths: readonly string[]): Promise<Modelled> {
  const model = new Model(program);
  await model.begin();
  for (const path of paths) {
    const problem = await model.settle(path);
    if (problem) return { ...model.result, problem };
  }
  return model.result;
}

/** The calls of each name in each context, in the order in which they come when outcomes come in an order of `random`. */
export async function callsInOrder(program: ProgramTree, random: () => number): Promise<Map<string, string[]>> {
  // What a flow has seen tells its calls apart, where flows see nothing of each other.
  const model = new Model({ ...program, shares: false });
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
  readonly result: Modelled = { end: undefined, steps: new Map() };

  constructor(program: ProgramTree) {
    this.#program = program;
  }

  async begin(): Promise<void> {
    const machine = {
      pause: async () => {},
      now: () => Number.POSITIVE_INFINITY,
      speed: () => 1,
      onCall: (calls: ContextCalls, name: string, what: string) => (calls as Scope).noted(name, what),
    };
    runTree(this.#program, new Scope(this, ""), machine).then(
      (value) => {
        this.result.end ??= { value: stored(value) };
      },
      (error) => {
        this.result.end ??= { error: toStored(error) };
      },
    );
    await drained();
  }

  ready(): string[] {
    return [...this.#open.values()].filter((open) => open.isReady()).map(({ path }) => path);
  }

  async settle(path: string): Promise<string | undefined> {
    const open = this.#open.get(path);
    if (!open) return `"${path}" had not been called, or had ended`;
    if (!open.isReady()) return `the race "${path}" had no winner`;
    this.#open.delete(path);
    await open.settle();
    await drained();
    return undefined;
  }

  open(path: string, outcome: () => Promise<TreeEnd | { thrown: unknown }>, isReady = () => true): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    promise.catch(() => {});
    const settle = async () => {
      const settled = await outcome();
      if ("thrown" in settled) reject(settled.thrown);
      else if ("error" in settled) reject(fromStored(settled.error));
      else resolve(settled.value);
    };
    this.#open.set(path, { path, settle, isReady });
    return promise;
  }
}

class Scope implements ContextCalls {
  readonly #model: Model;
  readonly #prefix: string;
  readonly #names = new Map<string, number>();
  #drawn = 0;

  constructor(model: Model, prefix: string) {
    this.#model = model;
    this.#prefix = prefix;
  }

  noted(name: string, what: string): void {
    const key = `${this.#prefix}|${name}`;
    this.#model.called.set(key, [...(this.#model.called.get(key) ?? []), what]);
  }

  step(name: string, fn: (step: { attempt: number }) => unknown, options: StepOptions = {}): Promise<unknown> {
    const path = this.#path(name);
    return this.#model.open(path, async () => {
      const settled = await attempts(fn, options);
      this.#model.result.steps.set(path, structuredClone(settled));
      return settled;
    });
  }

  emit(): Promise<unknown> {
    return this.#model.open(this.#path("emit"), async () => ({ value: undefined }));
  }

  random(): number {
    return seededNumber(SEED, this.#draw());
  }

  uuid(): string {
    return seededUuid(SEED, this.#draw());
  }

  #draw(): string {
    this.#drawn += 1;
    return `${this.#prefix}#${this.#drawn}`;
  }

  sleep(name: string): Promise<unknown> {
    return this.#model.open(this.#path(name), async () => ({ value: undefined }));
  }

  ask(name: string): Promise<unknown> {
    const path = this.#path(name);
    return this.#model.open(path, async () => ({ value: answerTo(path) }));
  }

  start(job: string, name: string): Promise<string> {
    return this.#model.open(this.#path(name), async () => ({ value: job })) as Promise<string>;
  }

  await(job: string): Promise<unknown> {
    return this.#model.open(this.#path(job), async () => jobOf(job));
  }

  until(name: string, _every: number, lasting: number | undefined, check: () => unknown): Promise<unknown> {
    const path = this.#path(name);
    return this.#model.open(path, async () => {
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
    const path = this.#path(name);
    const scopes = Array.from({ length: count }, (_, i) => new Scope(this.#model, `${path}/${i}/`));
    const results: unknown[] = [];
    let next = 0;
    const lane = async () => {
      for (let i = next++; i < count; i = next++) results[i] = await fn(scopes[i] as Scope, i);
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, count) }, lane));
    return results;
  }

  race(name: string, branches: Record<string, (calls: ContextCalls) => Promise<unknown>>): Promise<unknown> {
    const path = this.#path(name);
    let won: { winner: string; promise: Promise<unknown> } | undefined;
    for (const [key, branch] of Object.entries(branches)) {
      const promise = branch(new Scope(this.#model, `${path}/${key}/`));
      const over = () => {
        won ??= { winner: key, promise };
      };
      promise.then(over, over);
    }
    const outcome = async () => {
      try {
        return { value: { winner: won?.winner, value: await won?.promise } };
      } catch (thrown) {
        return { thrown };
      }
    };
    return this.#model.open(path, outcome, () => won !== undefined);
  }

  #path(name: string): string {
    const count = (this.#names.get(name) ?? 0) + 1;
    this.#names.set(name, count);
    return `${this.#prefix}${name}${count === 1 ? "" : `#${count}`}`;
  }
}

async function attempts(fn: (step: { attempt: number }) => unknown, { retry }: StepOptions): Promise<TreeEnd> {
  for (let attempt = 1; ; attempt++) {
    try {
      return { value: stored(await fn({ attempt })) };
    } catch (error) {
      const isLast = retry === false || attempt >= (retry?.maxAttempts ?? 10) || error instanceof NonRetryableError;
      if (isLast) return { error: toStored(error, isFinal(error) ? undefined : attempt) };
    }
  }
}

export const stored = (value: unknown): unknown =>
  value === undefined ? undefined : JSON.parse(JSON.stringify(value));

const drained = () => new Promise<void>((resolve) => setImmediate(resolve));
