/**
 * The run of a durable function in *windows*: one outcome is handed to it, and it runs as far as it can without waiting,
 * in microtasks alone. A call of the context outside of a window comes from inside a step, or follows an await of
 * something that is not the context's: that is refused.
 */
import { NondeterminismError } from "../../definitions/context.ts";
import { type Clock, whenDrained } from "../clock.ts";
import type { Command } from "./command.ts";
import { AWAITED, type FunctionEnd } from "./determinism.ts";
import type { Wakeup } from "./wakeup.ts";

export class FunctionRun {
  readonly #clock: Clock;
  readonly #wakeup: Wakeup;
  readonly #afterwards: (() => void)[] = [];
  /** Whether the function runs now. */
  isOpen = false;
  /** The number of the newest window, counted from 1, and the command whose outcome opened it. */
  window = 0;
  cause: Command | undefined;
  end: FunctionEnd;
  /** The first rule that the function broke. The job ends with it, even if the function catches it. */
  broken: NondeterminismError | undefined;
  /** Whether the outcomes that are handed over come from the journal. */
  isReplaying: boolean;

  constructor(clock: Clock, wakeup: Wakeup, isReplaying: boolean) {
    this.#clock = clock;
    this.#wakeup = wakeup;
    this.isReplaying = isReplaying;
  }

  async begin(fn: () => Promise<unknown>): Promise<void> {
    await this.moveOn(() => {
      fn().then(
        (value) => this.#ended({ value }),
        (error) => this.#ended({ error }),
      );
    });
  }

  /** Opens a window: hands something to the function, and lets it run until it waits. */
  async moveOn(hand: () => void, cause?: Command): Promise<void> {
    // Lets the microtasks of running steps finish: they must not find the window open.
    if (!this.isReplaying) await this.#clock.turn();
    this.isOpen = true;
    this.window += 1;
    this.cause = cause;
    hand();
    await whenDrained(() => {
      this.isOpen = false;
    });
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

  #ended(end: NonNullable<FunctionEnd>): void {
    if (!this.isOpen) this.breaks(`the function ended ${AWAITED}`);
    this.end ??= end;
    this.#wakeup.wake();
  }
}
