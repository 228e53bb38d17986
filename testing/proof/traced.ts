import type { Context, Question } from "../../core/definitions/context.ts";
import type { ContextCalls } from "./program.ts";

const question: Question = { message: "?", requestedSchema: { type: "object", properties: {} } };

/** A context, of which is noted in what order outcomes come. */
export class Traced implements ContextCalls {
  readonly #ctx: Context;
  readonly #prefix: string;
  readonly #order: string[];
  readonly #names = new Map<string, number>();

  constructor(ctx: Context, order: string[], prefix = "") {
    this.#ctx = ctx;
    this.#order = order;
    this.#prefix = prefix;
  }

  step: ContextCalls["step"] = (name, fn, options) => this.#noted(name, this.#ctx.step(name, fn, options));
  sleep: ContextCalls["sleep"] = (name, ms) => this.#noted(name, this.#ctx.sleep(name, ms));
  ask: ContextCalls["ask"] = (name) => this.#noted(name, this.#ctx.ask(name, question));
  emit: ContextCalls["emit"] = (value) => this.#noted("emit", this.#ctx.emit(value));
  random: ContextCalls["random"] = () => this.#ctx.random();
  uuid: ContextCalls["uuid"] = () => this.#ctx.uuid();
  await: ContextCalls["await"] = (job) => this.#noted(job, this.#ctx.await(job));

  start: ContextCalls["start"] = (job, name) => {
    const startable = { kind: job, args: { parse: (value: unknown) => value } };
    return this.#noted(
      name,
      this.#ctx.start(startable, {}, { name }).then((child) => child.name),
    );
  };

  until: ContextCalls["until"] = (name, every, lasting, check) => {
    const options = { every, ...(lasting !== undefined && { for: lasting }) };
    return this.#noted(name, this.#ctx.until(name, options, check));
  };

  all: ContextCalls["all"] = (name, count, concurrency, fn) => {
    const path = this.#path(name);
    const items = Array.from({ length: count }, (_, i) => i);
    const each = (ctx: Context, i: number) => fn(this.#within(ctx, path, String(i)), i);
    return this.#ctx.all(items, each, { name, concurrency });
  };

  race: ContextCalls["race"] = (name, branches) => {
    const path = this.#path(name);
    const traced = Object.entries(branches).map(([key, branch]) => [
      key,
      (ctx: Context) => branch(this.#within(ctx, path, key)),
    ]);
    return this.#note(path, this.#ctx.race(Object.fromEntries(traced), { name }));
  };

  #within(ctx: Context, path: string, key: string): Traced {
    return new Traced(ctx, this.#order, `${path}/${key}/`);
  }

  #noted<T>(name: string, promise: Promise<T>): Promise<T> {
    return this.#note(this.#path(name), promise);
  }

  #note<T>(path: string, promise: Promise<T>): Promise<T> {
    const note = () => this.#order.push(path);
    promise.then(note, note);
    return promise;
  }

  #path(name: string): string {
    const count = (this.#names.get(name) ?? 0) + 1;
    this.#names.set(name, count);
    return `${this.#prefix}${name}${count === 1 ? "" : `#${count}`}`;
  }
}
