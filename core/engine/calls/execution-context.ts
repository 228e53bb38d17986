/** The context as the author sees it. Each of its calls is made in a file of its own. */
import type {
  AllOptions,
  Answer,
  Callback,
  CallbackOptions,
  ChildJob,
  Context,
  Log,
  Metrics,
  Question,
  Spent,
  Startable,
  Step,
  StepOptions,
  TypedQuestion,
  Winner,
} from "../../author/context.ts";
import { outside } from "../guard/guard.ts";
import { all, allSettled } from "./all.ts";
import { ask } from "./ask.ts";
import { awaitJob } from "./await.ts";
import { callback } from "./callback.ts";
import { continueAs } from "./continue-as.ts";
import { emit, event } from "./emit.ts";
import { any, type Branches, race, timeout } from "./race.ts";
import type { Scope } from "./scope.ts";
import { sleep } from "./sleep.ts";
import { spend } from "./spend.ts";
import { start } from "./start.ts";
import { step } from "./step.ts";
import { until } from "./until.ts";
import { now, random, uuid } from "./values.ts";

export class ExecutionContext implements Context {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
    for (const [name, method] of METHODS) Reflect.set(this, name, method.bind(this));
  }

  get jobName(): string {
    return this.#scope.parts.runtime.jobName;
  }

  get deadline(): number {
    const { cancelled, deadline } = this.#scope.parts.runtime;
    return cancelled?.deadline ?? deadline;
  }

  get signal(): AbortSignal {
    return this.#scope.parts.signal;
  }

  get env(): unknown {
    return this.#scope.parts.runtime.env;
  }

  get log(): Log {
    return this.#scope.log;
  }

  get metrics(): Metrics {
    return this.#scope.metrics;
  }

  step<T>(name: string, fn: (step: Step) => T | Promise<T>, options: StepOptions = {}): Promise<T> {
    return step(this.#scope, name, fn, options);
  }

  start<Args, Result>(
    definition: Startable<Args, Result> | { readonly job: Startable<Args, Result> },
    args: Args,
    { name }: { name?: string } = {},
  ): Promise<ChildJob<Result>> {
    return start(this.#scope, definition, args, name);
  }

  sleep(name: string, until: number | Date): Promise<void> {
    return sleep(this.#scope, name, until);
  }

  ask<Content>(name: string, question: TypedQuestion<Content>): Promise<Answer<Content>>;
  ask(name: string, question: Question): Promise<Answer>;
  ask(name: string, question: Question | TypedQuestion<unknown>): Promise<Answer<unknown>> {
    return ask(this.#scope, name, question);
  }

  callback<T = unknown>(name: string, options: CallbackOptions<T> = {}): Callback<T> {
    return callback(this.#scope, name, options);
  }

  await<T>(job: string | ChildJob<T>): Promise<T> {
    return awaitJob(this.#scope, job);
  }

  until<T>(
    name: string,
    options: { every: number; for?: number },
    check: (step: Step) => T | Promise<T>,
  ): Promise<Exclude<T, false | null | undefined | 0 | "">> {
    return until(this.#scope, name, options, check);
  }

  all<Item, T>(
    items: readonly Item[],
    fn: (ctx: Context, item: Item, index: number) => Promise<T>,
    options: AllOptions<Item> = {},
  ): Promise<T[]> {
    return all(this.#scope, items, fn, options);
  }

  allSettled<Item, T>(
    items: readonly Item[],
    fn: (ctx: Context, item: Item, index: number) => Promise<T>,
    options: AllOptions<Item> = {},
  ): Promise<PromiseSettledResult<T>[]> {
    return allSettled(this.#scope, items, fn, options);
  }

  race<B extends Branches>(branches: B, { name = "race" }: { name?: string } = {}): Promise<Winner<B>> {
    return race(this.#scope, branches, name);
  }

  any<B extends Branches>(branches: B, { name = "any" }: { name?: string } = {}): Promise<Winner<B>> {
    return any(this.#scope, branches, name);
  }

  timeout<T>(ms: number, fn: (ctx: Context) => Promise<T>, { name = "timeout" }: { name?: string } = {}): Promise<T> {
    return timeout(this.#scope, ms, fn, name);
  }

  spend(amount: number, { of }: { of: string }): Promise<Spent> {
    return spend(this.#scope, amount, of);
  }

  progress(done: number | string, total?: number, message?: string): void {
    outside(() => this.#scope.parts.report.progress(done, total, message));
  }

  emit(value: unknown): Promise<void> {
    return emit(this.#scope, value);
  }

  event(name: string, payload: unknown): Promise<void> {
    return event(this.#scope, name, payload);
  }

  now(): number {
    return now(this.#scope);
  }

  random(): number {
    return random(this.#scope);
  }

  uuid(): string {
    return uuid(this.#scope);
  }

  continueAs(args: unknown): Promise<never> {
    return continueAs(this.#scope, args);
  }
}

/** The methods may be taken out of a context and called alone: `const { step } = ctx`. */
const METHODS = Object.entries(Object.getOwnPropertyDescriptors(ExecutionContext.prototype)).flatMap(
  ([name, { value }]): [string, (...args: never) => unknown][] =>
    typeof value === "function" && name !== "constructor" ? [[name, value]] : [],
);
