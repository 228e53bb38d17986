/**
 * One pass of a durable function over its journal, in *windows*: the function is handed one outcome, and runs in microtasks
 * alone until it waits again. A call of the context outside of a window is refused: it comes from inside a step, or follows an
 * await of something that is not the context's.
 */
import { NondeterminismError } from "../../author/context.ts";
import { sourceLine } from "../../author/source-line.ts";
import { type Clock, whenDrained } from "../clock.ts";
import { type Guarded, inside } from "../guard/guard.ts";
import type { Runtime } from "../runtime.ts";
import type { Command } from "./commands/command.ts";
import type { Wakeup } from "./commands/wakeup.ts";
import { AWAITED, type FunctionEnd, NEVER_LATER, NOT_RETURNED, unhandled } from "./determinism.ts";

/** How often a function may call `ctx.now` without an await in between: more is a loop that would never end. */
const MOST_LOOKS = 10_000;

export class FunctionPass implements Guarded {
  readonly #clock: Clock;
  readonly #wakeup: Wakeup;
  readonly #afterwards: (() => void)[] = [];
  /** Whether the function runs now. */
  isOpen = false;
  /** The number of the newest window, counted from 1, and the command whose outcome opened it. */
  window = 0;
  cause: Command | undefined;
  end: FunctionEnd;
  /** The arguments of the next run, after `ctx.continueAs`. Calls that the function then makes in `finally` still end. */
  next: { args: unknown } | undefined;
  /** The first rule that the function broke. The job ends with it, even if the function catches it. */
  broken: NondeterminismError | undefined;
  /** Whether the outcomes that are handed over come from the journal. */
  isReplaying: boolean;
  /** Whether the function knows that its job was cancelled, or that the deadline has come. */
  isTold = false;
  /** What the function was told, and in which window. Groups that were open then end with their last item or branch. */
  told: { error: Error; window: number; reason: string | undefined } | undefined;
  /** Whether the deadline has come. Until the function knows, failures of attempts are not recorded. */
  isLate = false;
  /** When all questions, callbacks and retries of the function end at the latest, in milliseconds since the epoch. */
  waitsUntil: number;
  #now: number;
  #looks = 0;

  constructor(
    clock: Clock,
    wakeup: Wakeup,
    { startedAt, deadline }: Pick<Runtime, "startedAt" | "deadline">,
    isReplaying: boolean,
  ) {
    this.#clock = clock;
    this.#wakeup = wakeup;
    this.isReplaying = isReplaying;
    this.#now = startedAt;
    this.waitsUntil = deadline;
  }

  async begin(fn: () => Promise<unknown>): Promise<void> {
    await this.moveOn(() => {
      inside(this, fn).then(
        (value) => this.#ended({ value }),
        (error) => this.#ended({ error }),
      );
    });
  }

  /** The server's time of the newest outcome that the function knows of: the same in each pass. */
  now(): number {
    this.#looks += 1;
    if (this.#looks > MOST_LOOKS) throw this.breaks(`ctx.now()${sourceLine()} ${NEVER_LATER}`);
    return this.#now;
  }

  /** Opens a window: hands over an outcome of the time `at`, and lets the function run until it waits. */
  async moveOn(hand: () => void, cause?: Command, at = 0): Promise<void> {
    // Lets the microtasks of running steps finish: they must not find the window open.
    if (!this.isReplaying) await this.#clock.turn();
    this.isOpen = true;
    this.window += 1;
    this.cause = cause;
    this.#now = Math.max(this.#now, at);
    this.#looks = 0;
    try {
      hand();
    } finally {
      await whenDrained(() => {
        this.isOpen = false;
      });
    }
    for (const action of this.#afterwards.splice(0)) action();
  }

  /** Runs an action outside of windows: at once, or when the open one closes. */
  afterwards(action: () => void): void {
    if (this.isOpen) this.#afterwards.push(action);
    else action();
  }

  breaks(words: string): NondeterminismError {
    this.broken ??= new NondeterminismError(words);
    this.#wakeup.wake();
    return this.broken;
  }

  /** Something that the function started has failed, and nothing awaits it. */
  unhandled(reason: unknown): void {
    this.breaks(unhandled(reason));
  }

  #ended(end: NonNullable<FunctionEnd>): void {
    if (!this.isOpen) this.breaks(`the function ended ${AWAITED}`);
    if (this.next && "value" in end) this.breaks(NOT_RETURNED);
    this.end ??= end;
    this.#wakeup.wake();
  }
}
