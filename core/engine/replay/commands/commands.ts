/** The calls that a durable function has made of its context: its commands, by their paths, and which of them are open. */
import {
  DeadlineExceeded,
  JobCancelled,
  NondeterminismError,
  type Question,
  type Step,
  type StepOptions,
} from "../../../author/context.ts";
import type { PromiseRecord } from "../../../resonate/connection/protocol.ts";
import { splitGeneration } from "../../../resonate/ids.ts";
import type { When } from "../../job-lease.ts";
import type { JournalEntry } from "../../journal.ts";

export type CommandKind =
  | "step"
  | "emit"
  | "start"
  | "until"
  | "race"
  | "sleep"
  | "ask"
  | "callback"
  | "await"
  | "all"
  | "cleanup";

/** The parameter of a callback's promise: the path of its command, and the JSON Schema of what may be sent. */
export interface CallbackParam {
  callback: string;
  schema?: object;
}

export type StepFunction = (step: Step) => unknown;

/** The work that leads to a command's outcome, as long as the journal does not hold one. */
export type Work =
  | { do: "attempt"; fn: StepFunction; options: StepOptions }
  | { do: "check"; check: StepFunction; every: number; for?: number }
  | { do: "record"; entry: JournalEntry; when: When };

export interface Command {
  readonly kind: CommandKind;
  readonly name: string;
  /** The names of the contexts around the command, its own name, and from the second command of a name on a count. */
  readonly path: string;
  /** The window in which the function issued the command, and the command whose outcome opened that window. */
  readonly window: number;
  readonly cause: Command | undefined;
  /** Whether it belongs to a clean-up, which a cancellation and the deadline do not interrupt. */
  readonly isShielded: boolean;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  /** Absent where the outcome comes from elsewhere: `await`, `all`, and `race` until a branch has ended. */
  work?: Work;
  isRunning: boolean;
  /** The outcome has reached the function, or the function no longer uses it. */
  isOver: boolean;
  abort?: AbortController;
  /** The promise that a sleep, a question, a callback or an `await` waits for. */
  awaitedPromise?: {
    id: string;
    /** When a sleep ends, in milliseconds since the epoch. */
    due?: number | undefined;
    settlement?: PromiseRecord | undefined;
    /** When it was last read, in milliseconds since the epoch. From then on it is watched, except for sleeps. */
    readAt?: number;
  };
  question?: Question;
  /** A callback's promise: its id, its time-out in milliseconds since the epoch, and its parameter. */
  callback?: { id: string; until: number; param: CallbackParam };
  /** How many attempts have failed, when the first of them did, and the message of the last. */
  attempts: number;
  failingSince: number;
  lastError?: string;
  /** The promise that ends the pause before the next attempt or look, and when it is due. */
  pause?: { id: string; due: number };
  /** The record that the work was begun: its number and its time. */
  beginning?: { n: number; at: number };
  /** The job that it starts, if that ends with this one: its name without a generation, or the whole name once it is known. */
  child?: string;
  /** When its work began here, in milliseconds since the epoch; 0 where it has not. */
  runningSince: number;
  /** The execution ended while the work was under way. */
  isCut?: boolean;
  /** The error that the function was handed. */
  failure?: { error: unknown };
  /** The promise that the function was given. */
  outcome?: Outcome<unknown>;
  /** The branch of a race that ended first. */
  winner?: { key: string; value: unknown; failed: boolean };
}

/** The promise that a call of the context returns, which knows whether anything awaits it. */
export class Outcome<T> extends Promise<T> {
  isAwaited = false;
}

// `await` and `then` first read the `constructor` of a promise. The answer makes this one a plain promise to them.
Object.defineProperty(Outcome.prototype, "constructor", {
  get(this: Outcome<unknown>) {
    this.isAwaited = true;
    return Promise;
  },
});

/** Whether a command has effects that the end of the function waits for. */
export const hasEffects = ({ kind }: { kind: string }): boolean =>
  kind === "step" || kind === "start" || kind === "emit";

/** Whether a command only groups others. */
export const isGroup = ({ kind }: Command): boolean => kind === "all" || kind === "race" || kind === "cleanup";

/** The commands of one name in one context. */
interface CommandsOfName {
  count: number;
  last: Command;
  /** Those that wait for their outcome, the oldest first. */
  open: Set<Command>;
}

/** The fields of a command that its context sets. */
interface NewCommand extends Pick<Command, "kind" | "name" | "window" | "cause" | "isShielded" | "resolve" | "reject"> {
  /** The path of the context. */
  within: string;
}

/** The fields by which a call that nothing awaits is found and named. */
type Call = Pick<Command, "path" | "failure" | "outcome"> & { readonly kind: CommandKind | "spend" };

export class Commands {
  /** Those whose outcome has not reached the function, in the order in which they were issued. */
  readonly open = new Set<Command>();
  readonly #byPath = new Map<string, Command>();
  readonly #byName = new Map<string, CommandsOfName>();
  /** The paths of the contexts that were given up. */
  readonly #givenUp: string[] = [];

  /** The window in which the cancellation reached the function. */
  #interruptedIn = 0;

  /**
   * Closes the open commands except groups and those of a clean-up, when a cancellation reaches the function in `window`;
   * returns them.
   */
  closeForInterruption(window: number): Command[] {
    this.#interruptedIn = window;
    const cancelled = [...this.open].filter((command) => !isGroup(command) && !command.isShielded);
    for (const command of cancelled) this.close(command);
    return cancelled;
  }

  /** How many commands have been issued. */
  get count(): number {
    return this.#byPath.size;
  }

  get paths(): Iterable<string> {
    return this.#byPath.keys();
  }

  /** Writes the output of each `ctx.emit` and `ctx.event` without a record, perhaps again. */
  readonly outputs = new Map<Command, () => Promise<unknown>>();

  /** How many partial results and events the job has emitted, in all runs, and how many of them are events. */
  emitted: number;
  events: number;

  constructor({ emitted, events } = { emitted: 0, events: 0 }) {
    this.emitted = emitted;
    this.events = events;
  }

  /** The calls of `ctx.spend` that have failed; they are no commands. */
  readonly failedSpends: Call[] = [];

  /** The first call that has failed and that nothing awaits. */
  get unawaitedFailure(): Call | undefined {
    return [...this.#byPath.values(), ...this.failedSpends].find(
      (call) => call.failure && !isCancellationOrDeadline(call.failure.error) && isUnawaited(call),
    );
  }

  /** The first step that nothing awaits, however it has ended. */
  get unawaitedStep(): Call | undefined {
    return this.#byPath.values().find((call) => call.kind === "step" && isUnawaited(call));
  }

  /**
   * Gives up a context. Returns the jobs that end with it: those that were started in it or inside of it, and nowhere else that is
   * not given up.
   */
  giveUp(path: string): string[] {
    this.#givenUp.push(path);
    const within = new Map<string, string>();
    const outside = new Set<string>();
    for (const command of this.#byPath.values()) {
      if (command.child === undefined) continue;
      const { base } = splitGeneration(command.child);
      if (command.path.startsWith(path)) within.set(base, command.child);
      else if (!this.#givenUp.some((each) => command.path.startsWith(each))) outside.add(base);
    }
    return [...within].flatMap(([base, child]) => (outside.has(base) ? [] : child));
  }

  get(path: string): Command | undefined {
    return this.#byPath.get(path);
  }

  /** @throws {NondeterminismError} if the ordinal of the name could differ in a replay */
  add({ within, ...issued }: NewCommand): Command {
    const first = within + escapeName(issued.name);
    const named = this.#byName.get(first);
    // Calls made before the cancellation come first under every timing.
    if (named && named.last.window >= this.#interruptedIn) refuseUncertain(named, issued);
    const count = (named?.count ?? 0) + 1;
    const path = count === 1 ? first : `${first}#${count}`;
    const command = {
      ...issued,
      path,
      attempts: 0,
      failingSince: 0,
      runningSince: 0,
      isRunning: false,
      isOver: false,
    };
    this.#byName.set(first, { count, last: command, open: (named?.open ?? new Set()).add(command) });
    this.#byPath.set(path, command);
    this.open.add(command);
    return command;
  }

  close(command: Command): void {
    command.isOver = true;
    this.open.delete(command);
    this.#byName.get(command.path.replace(/#\d+$/, ""))?.open.delete(command);
  }

  /** Closes the open commands of a context and of the contexts inside of it; returns them. */
  closeWithin(path: string): Command[] {
    const within = [...this.open].filter((command) => command.path.startsWith(path));
    for (const command of within) this.close(command);
    return within;
  }
}

const isUnawaited = ({ outcome }: Call): boolean => outcome?.isAwaited === false;

/** Refuses a call whose ordinal among the calls of its name may depend on what ends first. */
function refuseUncertain(
  { last, open }: CommandsOfName,
  { kind, name, window, cause }: Omit<NewCommand, "within">,
): void {
  const [oldest] = open;
  const isUnsure = (oldest && oldest.window < window) || !comesAfter(last, window, cause);
  // All awaits of one job have the same outcome, so their order does not matter.
  if (!isUnsure || kind === ("await" satisfies CommandKind)) return;
  throw new NondeterminismError(
    `"${name}" is called again, and its place among the calls of that name cannot be told: it may depend on what ends first. Give each call a name of its own, or use ctx.all(items, async (ctx, item) => …), in which each item has a context of its own`,
  );
}

/**
 * Whether a call in `window`, which the outcome of `cause` opened, follows an `earlier` one under every timing: it does if
 * the chain of its causes leads through the window of the earlier call. Otherwise the chain leads through a command that
 * was open at that time, and whose outcome could have come first.
 */
function comesAfter(earlier: Command, window: number, cause: Command | undefined): boolean {
  if (earlier.window === window) return true;
  let ancestor = cause;
  while (ancestor && ancestor.window > earlier.window) ancestor = ancestor.cause;
  return ancestor?.window === earlier.window;
}

/** Whether an error only says that the job is to end. */
export const isCancellationOrDeadline = (error: unknown): boolean =>
  error instanceof JobCancelled || error instanceof DeadlineExceeded;

/** A name within a path, where `/` separates contexts and `#` precedes a count. */
export const escapeName = (name: string): string =>
  name.replace(/[%/#]/g, (character) => encodeURIComponent(character));

/** The name of the call at the end of a path. */
export const nameIn = (path: string): string =>
  (path.split("/").at(-1) ?? "").replace(/#\d+$/, "").replace(/%(?:25|2F|23)/g, decodeURIComponent);
