/** `ctx.race`, `ctx.any` and `ctx.timeout`: branches side by side, each with a context of its own, of which one wins. */
import { type Context, NondeterminismError, TimeoutError, type Winner } from "../../author/context.ts";
import { durationInWords } from "../clock.ts";
import { type Command, isCancellationOrDeadline } from "../replay/commands/commands.ts";
import type { Scope } from "./scope.ts";
import { endChildren } from "./start.ts";

type Branches = Record<string, (ctx: Context) => Promise<unknown>>;

interface Kind {
  call: "race" | "any" | "timeout";
  /** Whether the end of a branch, in the order in which they end, decides the race: as it is, or with another error. */
  decides(failed: boolean, error: unknown): boolean | { error: Error };
}

export function race<B extends Branches>(
  scope: Scope,
  branches: B,
  { name = "race" }: { name?: string } = {},
): Promise<Winner<B>> {
  return firstOf(scope, branches, name, { call: "race", decides: () => true });
}

export function any<B extends Branches>(
  scope: Scope,
  branches: B,
  { name = "any" }: { name?: string } = {},
): Promise<Winner<B>> {
  const errors: unknown[] = [];
  const count = Object.keys(branches ?? {}).length;
  const decides = (failed: boolean, error: unknown) => {
    if (!failed) return true;
    errors.push(error);
    if (errors.length < count) return false;
    const reasons = errors.map((each) => (each instanceof Error ? each.message : String(each)));
    return { error: new AggregateError(errors, `every branch failed: ${reasons.join("; ")}`) };
  };
  return firstOf(scope, branches, name, { call: "any", decides });
}

export function timeout<T>(
  scope: Scope,
  ms: number,
  fn: (ctx: Context) => Promise<T>,
  { name = "timeout" }: { name?: string } = {},
): Promise<T> {
  const branches = { work: fn, late: (ctx: Context) => ctx.sleep("timeout", ms) };
  const map = ({ winner, value }: Winner<typeof branches>) => {
    if (winner === "late") throw new TimeoutError(`ctx.timeout: "${name}" took longer than ${durationInWords(ms)}`);
    return value as T;
  };
  return firstOf(scope, branches, name, { call: "timeout", decides: () => true }, map);
}

function firstOf<B extends Branches, T = Winner<B>>(
  scope: Scope,
  branches: B,
  name: string,
  kind: Kind,
  map?: (winner: Winner<B>) => T,
): Promise<T> {
  const prepare = (command: Command) => {
    const keys = Object.keys(branches ?? {});
    if (keys.length === 0) throw new NondeterminismError(`ctx.${kind.call}: it has no branches`);
    if (!Object.values(branches).every((branch) => typeof branch === "function")) {
      const form = kind.call === "timeout" ? "ms, (ctx) => …" : "{ a: (ctx) => …, b: (ctx) => … }";
      throw new NondeterminismError(`ctx.${kind.call} takes a function for each branch: ctx.${kind.call}(${form})`);
    }
    new BranchGroup(scope, command, kind, keys).run(branches);
  };
  return scope.issue("race", name, prepare, { map });
}

/**
 * The branches of one call. They run until the end of one decides the race. If the job is cancelled or its deadline comes
 * meanwhile, all branches end: the first that succeeded wins, and otherwise one that throws the cancellation.
 */
class BranchGroup {
  readonly #scope: Scope;
  readonly #command: Command;
  readonly #kind: Kind;
  readonly #scopes: ReadonlyMap<string, Scope>;
  /** How many branches have not ended. */
  #open: number;
  #first: Command["winner"];
  #succeeded: Command["winner"];
  #interrupted: Command["winner"];

  constructor(scope: Scope, command: Command, kind: Kind, keys: readonly string[]) {
    const group = scope.group(command);
    this.#scope = scope;
    this.#command = command;
    this.#kind = kind;
    this.#scopes = new Map(keys.map((key) => [key, group.within(key)]));
    this.#open = keys.length;
    const { resolve, reject } = command;
    command.resolve = (value) => this.#settled(() => resolve(value));
    command.reject = (error) => this.#settled(() => reject(error));
  }

  /** The jobs of the branches that have lost end once that is recorded. */
  #settled(settle: () => void): void {
    const command = this.#command;
    const within = this.#scope.shielded(`${command.path}/`, this.#scope);
    for (const [key, { path }] of this.#scopes) if (key !== command.winner?.key) void endChildren(within, path);
    settle();
  }

  run(branches: Branches): void {
    for (const [key, branch] of this.#scopes) {
      const run = async () => (branches[key] as Branches[string])(branch.parts.contextOf(branch));
      run().then(
        (value) => this.#ended(key, value, false),
        (error) => this.#ended(key, error, true),
      );
    }
  }

  #ended(key: string, value: unknown, failed: boolean): void {
    const command = this.#command;
    if (command.winner || command.isOver) return;
    this.#scope.checkEnd(`ctx.${this.#kind.call}: the branch "${key}"`);
    this.#open -= 1;
    const decision = this.#kind.decides(failed, value);
    const end = { key, value: typeof decision === "object" ? decision.error : value, failed };
    if (decision !== false) this.#first ??= end;
    if (!failed) this.#succeeded ??= end;
    else if (isCancellationOrDeadline(value)) this.#interrupted ??= { ...end, value };
    const endsWithLast = this.#scope.endsWithLast(command);
    const winner = endsWithLast ? (this.#succeeded ?? this.#interrupted ?? this.#first) : this.#first;
    if (winner && !(endsWithLast && this.#open > 0)) this.#decide(winner);
  }

  #decide(winner: NonNullable<Command["winner"]>): void {
    const command = this.#command;
    command.winner = winner;
    for (const [key, branch] of this.#scopes) if (key !== winner.key) branch.abandon();
    const isLate = this.#kind.call === "timeout" && winner.key === "late";
    const hasFailed = (winner.failed || isLate) && { failed: true as const };
    const entry = { kind: "race" as const, op: command.path, winner: winner.key, ...hasFailed };
    command.work = { do: "record", entry, when: "resolved" };
  }
}
