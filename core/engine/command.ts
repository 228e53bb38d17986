/** One call that a durable function made of its context. */

import { JobFailed, type Question } from "../definitions/context.ts";
import { decodeValue } from "../store/codec.ts";
import type { PromiseRecord } from "../store/protocol.ts";
import type { ExecutionContext } from "./execution-context.ts";
import type { JournalEntry } from "./journal.ts";

export type CommandKind = "step" | "start" | "until" | "race" | "sleep" | "ask" | "await" | "all";

export interface Command {
  readonly kind: CommandKind;
  readonly name: string;
  /** The names that lead to it. */
  readonly path: string;
  readonly scope: ExecutionContext;
  /** The window in which it was called, and the call whose outcome opened that. */
  readonly window: number;
  readonly cause: Command | undefined;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  /** Does its work, where no record says what came of it. */
  perform?: () => Promise<void>;
  isRunning: boolean;
  /** Its outcome has reached the function, or is of no use to it any more. */
  isOver: boolean;
  abort?: AbortController;
  /** What it waits for outside: a sleep (with its end), an answer, another job. */
  awaited?: {
    id: string;
    due?: number;
    settled?: PromiseRecord;
    /** When it was last looked at: from then on news of it comes by itself, but of a sleep. */
    lookedAt?: number;
  };
  question?: Question;
  /** How many attempts have failed, since when, and with what the last one did. */
  attempts: number;
  failingSince: number;
  lastError?: string;
  /** The promise that ends the pause before its next attempt or look, and when that is due. */
  pause?: { id: string; due: number };
  /** Its record that it was begun: which, and when. */
  begun?: { n: number; at: number };
  runningSince: number;
  /** The branch that ended first. */
  winner?: { key: string; value: unknown; failed: boolean };
}

/** Whether a call has effects of its own, which the end of the function waits for. */
export const isWork = ({ kind }: Command): boolean => kind === "step" || kind === "start";

/** Whether a call of that kind could have left such a record. */
export function fitsRecord(kind: CommandKind, event: JournalEntry): boolean {
  if (event.kind === "begin") return event.of === kind;
  return event.kind === "retry" ? kind === "step" || kind === "start" : event.kind === kind;
}

/**
 * Whether a call that is made in a `window` opened by the outcome of `cause` comes after an `earlier` one whatever is
 * fast or slow: what led to it led over the window of the earlier call. Otherwise it led over a call that waited
 * meanwhile, and could have been first.
 */
export function comesAfter(earlier: Command, window: number, cause: Command | undefined): boolean {
  if (earlier.window === window) return true;
  let led = cause;
  while (led && led.window > earlier.window) led = led.cause;
  return led?.window === earlier.window;
}

/** Hands over which branch has won, and with what. */
export function settleRace({ winner, resolve, reject }: Command): void {
  if (winner?.failed) reject(winner.value);
  else if (winner) resolve({ winner: winner.key, value: winner.value });
}

/** Hands over what came of a sleep, a question or another job. */
export function settleAwaited(op: Command, promise: PromiseRecord): void {
  const isResolved = promise.state === "resolved";
  if (op.kind === "sleep") op.resolve(undefined);
  else if (op.kind === "ask") op.resolve(isResolved ? decodeValue(promise.value) : { action: "cancel" });
  else if (isResolved) op.resolve(decodeValue(promise.value));
  else op.reject(new JobFailed(op.name, ...whyNot(promise)));
}

function whyNot({ state, value }: PromiseRecord): [status: string, reason: string] {
  if (state === "rejected_canceled") return ["cancelled", "it was cancelled"];
  if (state === "rejected_timedout") return ["timed_out", "it did not finish before its deadline"];
  const thrown = decodeValue(value);
  return ["failed", thrown instanceof Error ? thrown.message : String(thrown ?? "no reason given")];
}

/** A name within a path, where `/` tells contexts apart and `#` calls of one name. */
export const escaped = (name: string): string => name.replace(/[%/#]/g, (character) => encodeURIComponent(character));

const UNITS = [
  { ms: 86_400_000, one: "a day", more: "days" },
  { ms: 3_600_000, one: "an hour", more: "hours" },
  { ms: 60_000, one: "a minute", more: "minutes" },
  { ms: 1_000, one: "a second", more: "seconds" },
];

/** A time in milliseconds, in words. */
export function words(ms: number): string {
  const unit = UNITS.find((each) => ms >= each.ms);
  if (!unit) return `${Math.round(ms)} milliseconds`;
  const count = Number((ms / unit.ms).toFixed(1));
  return count === 1 ? unit.one : `${count} ${unit.more}`;
}
