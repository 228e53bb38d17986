import { type Context, JobCancelled, type JobContext, type Question } from "../../core/author/context.ts";
import { CANCELLED, jobIn, pathsWithin } from "./model.ts";
import { BUDGET, type ContextCalls } from "./program.ts";

const question: Question = { message: "?", requestedSchema: { type: "object", properties: {} } };

/** A context that records the order in which outcomes reach the function. */
export class Traced implements ContextCalls {
  readonly #ctx: Context;
  readonly #order: string[];
  readonly #path: (name: string) => string;
  /** The known limits of budgets. A changed limit shows that a question about it was answered. */
  readonly limits: Record<string, number | "denied">;

  readonly #isShielded: boolean;

  constructor(
    ctx: Context,
    order: string[],
    limits: Record<string, number | "denied"> = {},
    prefix = "",
    isShielded = false,
  ) {
    this.#isShielded = isShielded;
    this.#ctx = ctx;
    this.#order = order;
    this.#path = pathsWithin(prefix);
    this.limits = limits;
  }

  step: ContextCalls["step"] = (name, fn, options) => this.#noted(name, this.#ctx.step(name, fn, options));
  sleep: ContextCalls["sleep"] = (name, ms) => this.#noted(name, this.#ctx.sleep(name, ms));
  ask: ContextCalls["ask"] = (name) => this.#noted(name, this.#ctx.ask(name, question));
  callback: ContextCalls["callback"] = (name, within) =>
    this.#noted(name, this.#ctx.callback(name, within === undefined ? {} : { for: within }).result);
  emit: ContextCalls["emit"] = (value) => this.#noted("emit", this.#ctx.emit(value));
  random: ContextCalls["random"] = () => this.#ctx.random();
  uuid: ContextCalls["uuid"] = () => this.#ctx.uuid();
  await: ContextCalls["await"] = (job) => this.#noted(job, this.#ctx.await(job));

  start: ContextCalls["start"] = (job, name) => {
    const startable = { kind: jobIn(job, this.#isShielded), args: { parse: (value: unknown) => value } };
    return this.#noted(
      name,
      this.#ctx.start(startable, {}, { name }).then((child) => child.name),
    );
  };

  spend: ContextCalls["spend"] = (amount, of) => {
    const spent = this.#ctx.spend(amount, { of });
    const base = BUDGET[of as keyof typeof BUDGET].limit;
    const answered = (limit: number | "denied") => {
      if (limit === (this.limits[of] ?? base)) return;
      this.limits[of] = limit;
      // The refused limit is only in the job's records.
      this.#order.push(limit === "denied" ? `${of} up to` : `${of} up to ${limit}`);
    };
    const denied = (error: Error) => {
      if (error instanceof JobCancelled) this.#cancelled();
      else if (of === "denied") answered("denied");
    };
    spent.then(({ limit }) => answered(limit), denied);
    return spent;
  };

  until: ContextCalls["until"] = (name, every, lasting, check) => {
    const options = { every, ...(lasting !== undefined && { for: lasting }) };
    return this.#noted(name, this.#ctx.until(name, options, check));
  };

  cleanup: ContextCalls["cleanup"] = (name, fn) => {
    const path = this.#path(name);
    return this.#ctx.cleanup((ctx) => fn(new Traced(ctx, this.#order, this.limits, `${path}/`, true)), { name });
  };

  onUndo: ContextCalls["onUndo"] = (name, fn) => {
    try {
      this.#ctx.onUndo(name, fn);
    } catch (error) {
      throw this.#refused(error);
    }
  };

  continueAs = (args: unknown): Promise<never> =>
    (this.#ctx as JobContext<unknown>).continueAs(args).catch((error: unknown) => {
      throw this.#refused(error);
    });

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
    const race = this.#ctx.race(Object.fromEntries(traced), { name });
    // If a branch is rejected by the cancellation, that is an outcome of the race, not the cancellation itself.
    const isOver = this.#order.includes(CANCELLED);
    const note = () => this.#order.push(path);
    race.then(note, (error) => (isOver && error instanceof JobCancelled ? undefined : note()));
    return race;
  };

  #within(ctx: Context, path: string, key: string): Traced {
    return new Traced(ctx, this.#order, this.limits, `${path}/${key}/`, this.#isShielded);
  }

  #noted<T>(name: string, promise: Promise<T>): Promise<T> {
    const path = this.#path(name);
    const note = () => this.#order.push(path);
    promise.then(note, (error) => (error instanceof JobCancelled ? this.#cancelled() : note()));
    return promise;
  }

  /** Notes a cancellation that a call throws which waits for no outcome: it came before the newest outcome, that of a clean-up. */
  #refused(error: unknown): unknown {
    if (error instanceof JobCancelled && !this.#order.includes(CANCELLED)) this.#order.splice(-1, 0, CANCELLED);
    return error;
  }

  /** Records the cancellation once, although it rejects all open calls. */
  #cancelled(): void {
    if (!this.#order.includes(CANCELLED)) this.#order.push(CANCELLED);
  }
}
