/** A context as its calls use it: that of the function, or of an item or a branch. Calls become commands here. */
import { type Context, type Log, type Metrics, NondeterminismError } from "../../author/context.ts";
import { sourceLine } from "../../author/source-line.ts";
import { UnstorableValue } from "../../author/values.ts";
import type { Clock } from "../clock.ts";
import { outside } from "../guard/guard.ts";
import type { Lease } from "../job-lease.ts";
import type { JournalWriter } from "../journal-writer.ts";
import { type Command, type CommandKind, type Commands, escapeName, Outcome } from "../replay/commands/commands.ts";
import type { Spending } from "../replay/commands/spending.ts";
import { ADVICE_ON_ENDLESS_LOOPS, AFTER_FOREIGN_AWAIT } from "../replay/determinism.ts";
import type { FunctionPass } from "../replay/function-pass.ts";
import type { StateReport } from "../replay/state-report.ts";
import type { Runtime } from "../runtime.ts";

/** The longest name of a call, in UTF-16 code units. Awaited jobs may have longer names: the function has no choice. */
export const MAX_NAME_LENGTH = 200;
export const MAX_JOB_NAME_LENGTH = 1_000;

/** The parts of an execution that calls of the context use. */
export interface ScopeParts {
  readonly commands: Commands;
  readonly lease: Lease;
  readonly pass: FunctionPass;
  readonly report: StateReport;
  readonly writer: Pick<JournalWriter, "post">;
  /** Undefined for a job without a budget. */
  readonly spending: Spending | undefined;
  readonly runtime: Runtime;
  readonly clock: Clock;
  /** Aborted when the job is cancelled, at its deadline, and when its lease is lost. */
  readonly signal: AbortSignal;
  /** The lines of the author's code that make calls, by their paths: noted for those that are in it beforehand. */
  readonly lines: Map<string, string>;
  /** Makes the context that an author's code is handed for a scope. */
  contextOf(scope: Scope): Context;
}

interface IssueOptions<Value, T> {
  maxNameLength?: number;
  /** Turns the outcome into the value that the function gets, or throws the error that it gets. */
  map?: ((value: Value) => T) | undefined;
}

export class Scope {
  readonly parts: ScopeParts;
  readonly parent: Scope | undefined;
  /** The path of each of its commands begins with it. */
  readonly path: string;
  /** Whether its calls are part of a clean-up, and so work after a cancellation and after the deadline as well. */
  readonly isShielded: boolean;
  #isClosed = false;
  /** How many random values it has derived from the seed. */
  #draws = 0;

  constructor(parts: ScopeParts, parent?: Scope, path = "", isShielded = parent?.isShielded ?? false) {
    this.parts = parts;
    this.parent = parent;
    this.path = path;
    this.isShielded = isShielded;
  }

  /** The log of the function's own code, which is silent while the function is replayed. */
  get log(): Log {
    return whileLive(this.parts.pass, this.parts.runtime.log);
  }

  get metrics(): Metrics {
    return whileLive(this.parts.pass, this.parts.runtime.metrics);
  }

  /** The scope of the function itself. */
  get root(): Scope {
    return this.parent?.root ?? this;
  }

  /** Whether the outcomes of its calls are no longer used. */
  get isAbandoned(): boolean {
    return this.#isClosed || (this.parent?.isAbandoned ?? false);
  }

  /** The scope of a clean-up, or of the undos if it has no parent. */
  shielded(path: string, parent?: Scope): Scope {
    return new Scope(this.parts, parent, path, true);
  }

  /** The cancellation or the deadline, if the function knows of it: all its calls outside of a clean-up throw it again. */
  get interruption(): Error | undefined {
    return this.isShielded ? undefined : this.parts.pass.interruption?.error;
  }

  /** The scope around the items or branches of a command. */
  group({ path }: Command): Scope {
    return new Scope(this.parts, this, `${path}/`);
  }

  /** The scope of one item or branch. */
  within(key: string): Scope {
    return new Scope(this.parts, this, `${this.path}${escapeName(key)}/`);
  }

  /** Closes it and those inside of it. */
  abandon(): void {
    this.#isClosed = true;
    const { commands, pass } = this.parts;
    if (commands.open.size === 0) return;
    const closed = commands.closeWithin(this.path);
    // Listeners to the signals are not part of the function, so they run outside of windows.
    pass.afterwards(() => {
      for (const { abort } of closed) abort?.abort();
    });
  }

  /** A text that no other random value of the job is derived from. */
  nextDraw(): string {
    this.#draws += 1;
    return `${this.path}#${this.#draws}`;
  }

  /** Makes a command of a call. `prepare` completes it, and throws if the call breaks a rule. */
  issue<T, Value = never>(
    kind: CommandKind,
    name: string,
    prepare: (command: Command) => void,
    { maxNameLength = MAX_NAME_LENGTH, map }: IssueOptions<Value, T> = {},
  ): Promise<T> {
    const { commands, pass, lines } = this.parts;
    let command: Command | undefined;
    const result = new Outcome<unknown>((resolve, reject) => {
      // In an abandoned branch or item the promise never settles; it goes away with the execution.
      if (this.isAbandoned) return;
      if (kind !== "cleanup" && this.interruption) {
        if (pass.mayCallAgain()) reject(this.interruption);
        return;
      }
      try {
        this.checkCall(kind, name, maxNameLength);
        const { window, cause } = pass;
        const { isShielded } = this;
        command = commands.add({ kind, name, within: this.path, window, cause, isShielded, resolve, reject });
        if (lines.has(command.path)) lines.set(command.path, sourceLine());
        prepare(command);
      } catch (error) {
        if (command) commands.close(command);
        if (error instanceof UnstorableValue) pass.unstorable ??= error;
        const isRule = error instanceof NondeterminismError && !(error instanceof UnstorableValue);
        reject(isRule ? pass.ruleBroken(error.message) : error);
      }
    });
    const outcome = map ? mapped(result, map as (value: unknown) => T) : result;
    // A rejection that nothing awaits must not end the process, which runs other jobs as well.
    outcome.catch((error) => {
      if (command) command.failure = { error };
    });
    outcome.isAwaited = false;
    if (command) command.outcome = outcome;
    return outcome as Promise<T>;
  }

  /** Settles a command without a record. */
  settle(command: Command, settle: () => void): void {
    if (command.isOver) return;
    this.parts.commands.close(command);
    settle();
  }

  /** Whether a group ends with its last item or branch: it was open when the function heard that it has to end. */
  endsWithLast({ window }: Pick<Command, "window">): boolean {
    return !this.isShielded && window < (this.parts.pass.interruption?.window ?? 0);
  }

  /** Checks rule 2 when a function that was handed a context has ended. */
  checkEnd(what: string): void {
    if (!this.parts.pass.isOpen && !this.isAbandoned)
      this.parts.pass.ruleBroken(`${what} ended ${AFTER_FOREIGN_AWAIT}`);
  }

  /** Checks the name and the number of calls, and rules 2 and 3. @throws {NondeterminismError} */
  checkCall(
    call: CommandKind | "spend" | "continueAs" | "onUndo",
    name: string,
    maxNameLength = MAX_NAME_LENGTH,
  ): void {
    if (typeof name !== "string" || name === "" || name.length > maxNameLength) {
      const got =
        typeof name === "string"
          ? `has ${name.length}: "${name.slice(0, 60)}${name.length > 60 ? "…" : ""}"`
          : `is ${typeof name}`;
      throw new NondeterminismError(
        `ctx.${call}: its name must be a text of 1 to ${maxNameLength} characters, and ${got}${sourceLine()}. Shorten it, with hashed(value) for example`,
      );
    }
    const { commands, pass, runtime } = this.parts;
    if (runtime.maxCalls !== undefined && commands.count >= runtime.maxCalls) {
      throw new NondeterminismError(
        `ctx.${call}("${name}")${sourceLine()} comes after ${commands.count} calls of ctx: ${ADVICE_ON_ENDLESS_LOOPS}`,
      );
    }
    if (pass.isOpen) return;
    const running = [...commands.open].filter(({ isRunning }) => isRunning);
    const paths = running.slice(0, 3).map(({ path }) => `"${path}"`);
    const inside = paths.length > 0 ? `inside of a step (${paths.join(", ")}), or ` : "";
    throw new NondeterminismError(
      `ctx.${call}("${name}") was called ${inside}${AFTER_FOREIGN_AWAIT}. A step works with what it is handed${sourceLine("; it was called")}`,
    );
  }
}

/** A proxy of `service` whose methods do nothing while the function is replayed. They run outside of the function's guard. */
function whileLive<T extends object>(pass: FunctionPass, service: T): T {
  return new Proxy(service, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      return (...args: unknown[]) => (pass.isReplaying ? undefined : outside(() => method.apply(target, args)));
    },
  });
}

/**
 * As `result.then(map)`, and takes as many microtasks. A cancellation rejects several calls at once, and in stored journals the
 * order of the function's next calls follows from that number.
 */
function mapped<T>(result: Promise<unknown>, map: (value: unknown) => T): Outcome<T> {
  return new Outcome((resolve, reject) => {
    result.then((value) => {
      try {
        resolve(map(value));
      } catch (error) {
        reject(error);
      }
    }, reject);
  });
}

/** Refuses a promise in place of a function: the request behind it would be made again in each replay. */
export function checkFunction({ kind, name }: Command, fn: unknown): void {
  if (typeof fn === "function") return;
  const got = fn instanceof Promise ? "a promise" : `${typeof fn}`;
  throw new NondeterminismError(`ctx.${kind}("${name}") takes a function that does it, and got ${got}: write () => …`);
}
