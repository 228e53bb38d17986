/**
 * One pass of a durable function over its journal, in *windows*: the function is handed one outcome, and runs in microtasks
 * alone until it waits again. A call of the context outside of a window is refused: it comes from inside a step, or follows an
 * await of something that is not the context's.
 */
import { JobCancelled, NondeterminismError, type Step, type StepOptions } from "../../author/context.ts";
import { sourceLine } from "../../author/source-line.ts";
import type { Wakeup } from "../clock.ts";
import { type Clock, whenDrained } from "../clock.ts";
import { type GuardedPass, inside } from "../guard/guard.ts";
import type { Runtime } from "../runtime.ts";
import type { Command } from "./commands/commands.ts";
import {
  ADVICE_ON_TIME_LOOPS,
  AFTER_FOREIGN_AWAIT,
  CONTINUATION_NOT_RETURNED,
  type FunctionEnd,
  unhandledFailure,
} from "./determinism.ts";

/**
 * How often a function may make a call that throws the cancellation again. A loop of so many calls ends only with the job, and
 * holds the whole worker.
 */
const MAX_CALLS_AFTER_INTERRUPTION = 100_000;

/** How often a function may call `ctx.now` without an await in between: more is a loop that would never end. */
const MAX_NOW_CALLS = 10_000;

/** An undo of something that the function has done, or may have done. */
export interface Undo {
  /** The names of the contexts around the call and its own name. */
  readonly name: string;
  readonly fn: (step: Step) => unknown;
  readonly options: StepOptions;
}

export class FunctionPass implements GuardedPass {
  readonly #clock: Clock;
  readonly #wakeup: Wakeup;
  readonly #pendingActions: (() => void)[] = [];
  /** Whether the function runs now. */
  isOpen = false;
  /** The number of the newest window, counted from 1, and the command whose outcome opened it. */
  window = 0;
  cause: Command | undefined;
  end: FunctionEnd;
  /** The arguments of the next run, after `ctx.continueAs`. Calls that the function then makes in `finally` still end. */
  next: { args: unknown } | undefined;
  /** The first rule that the function broke. The job ends with it, even if the function catches it. */
  brokenRule: NondeterminismError | undefined;
  /** The first value that could not be stored. The function may undo what it has done, and then the job ends with it. */
  unstorable: NondeterminismError | undefined;
  /** Whether the outcomes that are handed over come from the journal. */
  isReplaying: boolean;
  /** Whether the function knows that its job was cancelled, or that the deadline has come. */
  isInterrupted = false;
  /** The cancellation or the deadline, once the function knows, and in which window. Groups that were open then end with their last item or branch. */
  interruption: { error: Error; window: number; reason: string | undefined } | undefined;
  /** What is undone if the function ends without a result: the newest last. */
  readonly undos: Undo[] = [];
  #isUndoing = false;
  #callsAfterInterruption = 0;
  #undo: (error: unknown) => Promise<void> = async () => {};
  /** Whether the deadline has come. Until the function knows, failures of attempts are not recorded. */
  isLate = false;
  /** When all questions, callbacks and retries of the function end at the latest, in milliseconds since the epoch. */
  waitsUntil: number;
  #now: number;
  #nowCalls = 0;

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

  /** `undo`: undoes what the function has done, if it ends with an error. */
  async begin(fn: () => Promise<unknown>, undo: (error: unknown) => Promise<void>): Promise<void> {
    this.#undo = undo;
    await this.moveOn(() => {
      inside(this, fn).then(
        (value) => this.#returned(value),
        (error) => this.#failed(error),
      );
    });
  }

  /**
   * Has the function hear of its cancellation or deadline, which `tell` hands to its open calls. If it has returned, or continued
   * in another run, a cancelled job still undoes what it has done.
   */
  interrupt(error: Error, reason: string | undefined, tell: () => void): void {
    this.interruption = { error, window: this.window, reason };
    const hasReturned = this.next !== undefined || (this.end !== undefined && "value" in this.end);
    if (hasReturned && this.#isCancelled && this.undos.length > 0) {
      this.end = undefined;
      this.next = undefined;
      this.#failed(error);
    }
    tell();
  }

  /** Whether a function that knows of its end may make another call, which throws that again; otherwise it is ended. */
  mayCallAgain(): boolean {
    this.#callsAfterInterruption += 1;
    if (this.#callsAfterInterruption < MAX_CALLS_AFTER_INTERRUPTION) return true;
    if (this.#callsAfterInterruption === MAX_CALLS_AFTER_INTERRUPTION) this.#failed(this.interruption?.error);
    return false;
  }

  get #isCancelled(): boolean {
    return this.interruption?.error instanceof JobCancelled;
  }

  #returned(value: unknown): void {
    // What it returns is no result.
    const isFailure = this.#isCancelled || this.unstorable !== undefined;
    if (this.#isUndoing || (isFailure && this.undos.length > 0))
      this.#failed(this.interruption?.error ?? this.unstorable);
    else this.#ended({ value });
  }

  #failed(error: unknown): void {
    if (!this.isOpen) this.ruleBroken(`the function ended ${AFTER_FOREIGN_AWAIT}`);
    if (this.#isUndoing) return;
    if (this.undos.length === 0) return this.#ended({ error });
    this.#isUndoing = true;
    const end = () => this.#ended({ error });
    this.#undo(error).then(end, end);
  }

  /** The server's time of the newest outcome that the function knows of: the same in each pass. */
  now(): number {
    this.#nowCalls += 1;
    if (this.#nowCalls > MAX_NOW_CALLS) throw this.ruleBroken(`ctx.now()${sourceLine()} ${ADVICE_ON_TIME_LOOPS}`);
    return this.#now;
  }

  /** Opens a window: hands over an outcome of the time `at`, and lets the function run until it waits. */
  async moveOn(deliver: () => void, cause?: Command, at = 0): Promise<void> {
    // Lets the microtasks of running steps finish: they must not find the window open.
    if (!this.isReplaying) await this.#clock.turn();
    this.isOpen = true;
    this.window += 1;
    this.cause = cause;
    this.#now = Math.max(this.#now, at);
    this.#nowCalls = 0;
    try {
      deliver();
    } finally {
      await whenDrained(() => {
        this.isOpen = false;
      });
    }
    for (const action of this.#pendingActions.splice(0)) action();
  }

  /** Runs an action outside of windows: at once, or when the open one closes. */
  afterwards(action: () => void): void {
    if (this.isOpen) this.#pendingActions.push(action);
    else action();
  }

  ruleBroken(message: string): NondeterminismError {
    this.brokenRule ??= new NondeterminismError(message);
    this.#wakeup.wake();
    return this.brokenRule;
  }

  /** Something that the function started has failed, and nothing awaits it. */
  unhandledRejection(reason: unknown): void {
    this.ruleBroken(unhandledFailure(reason));
  }

  #ended(end: NonNullable<FunctionEnd>): void {
    if (!this.isOpen) this.ruleBroken(`the function ended ${AFTER_FOREIGN_AWAIT}`);
    if (this.next && "value" in end) this.ruleBroken(CONTINUATION_NOT_RETURNED);
    this.end ??= end;
    this.#wakeup.wake();
  }
}
