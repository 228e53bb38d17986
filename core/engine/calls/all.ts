/** `ctx.all` and `ctx.allSettled`: a function for each of a list of items, each with a context of its own. */
import { type AllOptions, type Context, NondeterminismError } from "../../author/context.ts";
import type { Command } from "../replay/commands/commands.ts";
import type { Scope } from "./scope.ts";
import { endChildren } from "./start.ts";

type ItemFunction<Item, T> = (ctx: Context, item: Item, index: number) => Promise<T>;

export function all<Item, T>(
  scope: Scope,
  items: readonly Item[],
  fn: ItemFunction<Item, T>,
  { name = "all", key = plainKey, concurrency = Number.POSITIVE_INFINITY }: AllOptions<Item> = {},
): Promise<T[]> {
  return scope.issue("all", name, (command) => {
    if (!Array.isArray(items) || typeof fn !== "function") {
      throw new NondeterminismError(
        "ctx.all takes a list and what is done for each: ctx.all(items, async (ctx, item) => …)",
      );
    }
    if (!(concurrency >= 1))
      throw new NondeterminismError(`ctx.all: concurrency is ${concurrency}; it takes 1 or more`);
    new ItemGroup(scope, command, items, keysOf(items, key), fn).run(concurrency);
  });
}

export function allSettled<Item, T>(
  scope: Scope,
  items: readonly Item[],
  fn: ItemFunction<Item, T>,
  options: AllOptions<Item> = {},
): Promise<PromiseSettledResult<T>[]> {
  const { pass } = scope.parts;
  const { window } = pass;
  const settled = async (ctx: Context, item: Item, i: number): Promise<PromiseSettledResult<T>> => {
    if (scope.interruption && scope.endsWithLast({ window })) return { status: "rejected", reason: scope.interruption };
    try {
      return { status: "fulfilled", value: await fn(ctx, item, i) };
    } catch (reason) {
      return { status: "rejected", reason };
    }
  };
  return all(scope, items, settled, { name: "allSettled", ...options });
}

function keysOf<Item>(items: readonly Item[], key: NonNullable<AllOptions<Item>["key"]>): string[] {
  const keys = items.map((item, i) => String(key(item, i)));
  if (new Set(keys).size < keys.length) {
    const duplicate = keys.find((each, i) => keys.indexOf(each) !== i);
    throw new NondeterminismError(
      `ctx.all: two items have the key "${duplicate}". Give each its own: { key: (item) => … }`,
    );
  }
  return keys;
}

function plainKey(item: unknown): string {
  if (typeof item === "string" || typeof item === "number") return String(item);
  throw new NondeterminismError("ctx.all: items other than strings and numbers need a key: { key: (item) => … }");
}

/** The items of one call. */
class ItemGroup<Item, T> {
  readonly #scope: Scope;
  readonly #group: Scope;
  readonly #command: Command;
  readonly #items: readonly Item[];
  readonly #keys: readonly string[];
  readonly #fn: ItemFunction<Item, T>;
  readonly #results: T[];
  /** The keys of the items whose functions have not ended. */
  readonly #open: Set<string>;
  #next = 0;
  #failure: { error: unknown } | undefined;

  constructor(
    scope: Scope,
    command: Command,
    items: readonly Item[],
    keys: readonly string[],
    fn: ItemFunction<Item, T>,
  ) {
    this.#scope = scope;
    this.#group = scope.group(command);
    this.#command = command;
    this.#items = items;
    this.#keys = keys;
    this.#fn = fn;
    this.#results = new Array(items.length);
    this.#open = new Set(keys);
  }

  run(concurrency: number): void {
    const lanes = Array.from({ length: Math.min(concurrency, this.#items.length) }, () => this.#lane());
    const fail = (error: unknown) => this.#fail(error);
    Promise.all(lanes).then(() => {
      if (this.#failure) fail(this.#failure.error);
      else this.#scope.settle(this.#command, () => this.#command.resolve(this.#results));
    }, fail);
  }

  /** Runs one item after another. */
  async #lane(): Promise<void> {
    for (let i = this.#next++; i < this.#items.length && !this.#failure; i = this.#next++) {
      const key = this.#keys[i] as string;
      const itemScope = this.#group.within(key);
      try {
        this.#results[i] = await this.#fn(itemScope.parts.contextOf(itemScope), this.#items[i] as Item, i);
      } catch (error) {
        // The others clean up first.
        if (!this.#scope.endsWithLast(this.#command)) throw error;
        this.#failure ??= { error };
      } finally {
        this.#open.delete(key);
      }
      itemScope.checkEnd(`ctx.all: the function of item "${key}"`);
    }
  }

  #fail(error: unknown): void {
    this.#scope.checkEnd("ctx.all: the function of an item");
    this.#group.abandon();
    this.#reportGivenUp(error, [...this.#open]);
    const within = this.#scope.shielded(`${this.#command.path}/`, this.#scope);
    for (const key of this.#open) void endChildren(within, this.#group.within(key).path);
    this.#scope.settle(this.#command, () => this.#command.reject(error));
  }

  /** Adds the keys of the items that were given up to the error of a failed item, and logs their number. */
  #reportGivenUp(error: unknown, givenUp: readonly string[]): void {
    if (givenUp.length === 0) return;
    const reason = error instanceof Error ? error.message : String(error);
    this.#scope.log.warn("items given up", { all: this.#command.path, given_up: givenUp.length, reason });
    // An error that passes through several `ctx.all` keeps the list of the innermost.
    if (error instanceof Error && !Object.hasOwn(error, "givenUp"))
      Reflect.defineProperty(error, "givenUp", { value: givenUp });
  }
}
