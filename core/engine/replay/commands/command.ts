/** One call that a durable function made of its context. */
import type { Question, Step, StepOptions } from "../../../author/context.ts";
import type { PromiseRecord } from "../../../resonate/connection/protocol.ts";
import type { When } from "../../job-lease.ts";
import type { JournalEntry } from "../../journal.ts";

export type CommandKind = "step" | "emit" | "start" | "until" | "race" | "sleep" | "ask" | "callback" | "await" | "all";

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
export const isGroup = ({ kind }: Command): boolean => kind === "all" || kind === "race";
