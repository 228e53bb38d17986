/** The commands that a durable function has issued, by their paths, and which of them are open. */
import { DeadlineExceeded, JobCancelled, NondeterminismError } from "../../../author/context.ts";
import { type Command, type CommandKind, isGroup } from "./command.ts";

/** The commands of one name in one context. */
interface Named {
  count: number;
  last: Command;
  /** Those that wait for their outcome, the oldest first. */
  open: Set<Command>;
}

/** The fields of a command that its context sets. */
interface Issued extends Pick<Command, "kind" | "name" | "window" | "cause" | "resolve" | "reject"> {
  /** The path of the context. */
  within: string;
}

/** The fields by which a call that nothing awaits is found and named. */
type Call = Pick<Command, "path" | "failure" | "outcome"> & { readonly kind: CommandKind | "spend" };

export class Commands {
  /** Those whose outcome has not reached the function, in the order in which they were issued. */
  readonly open = new Set<Command>();
  readonly #byPath = new Map<string, Command>();
  readonly #named = new Map<string, Named>();

  /** The window in which the cancellation reached the function. */
  #interruptedIn = 0;

  /** Closes the open commands except groups, when a cancellation reaches the function in `window`; returns them. */
  closeForInterruption(window: number): Command[] {
    this.#interruptedIn = window;
    const cancelled = [...this.open].filter((command) => !isGroup(command));
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

  get(path: string): Command | undefined {
    return this.#byPath.get(path);
  }

  /** @throws {NondeterminismError} if the ordinal of the name could differ in a replay */
  add({ within, ...issued }: Issued): Command {
    const first = within + escaped(issued.name);
    const named = this.#named.get(first);
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
    this.#named.set(first, { count, last: command, open: (named?.open ?? new Set()).add(command) });
    this.#byPath.set(path, command);
    this.open.add(command);
    return command;
  }

  close(command: Command): void {
    command.isOver = true;
    this.open.delete(command);
    this.#named.get(command.path.replace(/#\d+$/, ""))?.open.delete(command);
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
function refuseUncertain({ last, open }: Named, { kind, name, window, cause }: Omit<Issued, "within">): void {
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
export const escaped = (name: string): string => name.replace(/[%/#]/g, (character) => encodeURIComponent(character));

/** The name of the call at the end of a path. */
export const nameIn = (path: string): string =>
  (path.split("/").at(-1) ?? "").replace(/#\d+$/, "").replace(/%(?:25|2F|23)/g, decodeURIComponent);
