/** A record of the actions of a run's clients, and of the answers that they got. */
import { isDeepStrictEqual } from "node:util";
import { splitGeneration } from "../../core/resonate/ids.ts";
import type { PlannedJob } from "./plan.ts";

/** A violated guarantee. */
export interface Violation {
  rule:
    | "lost"
    | "invented"
    | "wrong value"
    | "changed"
    | "early"
    | "late"
    | "upstream"
    | "unexpected answer"
    | "not told"
    | "process";
  job?: string;
  detail: string;
}

/** How a job ended, according to an answer. */
export interface Ending {
  status: string;
  result?: unknown;
  error?: string;
}

/** A job that clients tried to start, with everything that determines its possible outcomes. */
export interface Wanted {
  planned: PlannedJob;
  /** How many requests to start it were sent. */
  attempts: number;
  /** When the first and the last of these requests were sent, in milliseconds since the epoch. */
  firstSent: number;
  lastSent: number;
  /** The name in the first answer; undefined until there is one. */
  acknowledged?: string;
  /** For a timer: when it fires, according to the first answer. */
  firesAt?: string;
  /** The name whose cancellation was requested, and the answer. */
  cancel?: { name: string; outcome: "sent" | "cancelled" | "already_finished" };
  /** The answers to the job's question that were sent. */
  replies: Set<string>;
}

export class ClientLog {
  readonly violations: Violation[] = [];
  /** By job name, without a generation. */
  readonly wanted = new Map<string, Wanted>();
  readonly endings = new Map<string, Ending>();
  readonly #finishedAt = new Map<string, string>();
  /** Jobs that `await_result` returned as still running, and when, in milliseconds since the epoch. */
  readonly stillRunning: { name: string; at: number }[] = [];
  /** The failures of calls during disruptions, with their number. */
  readonly failures = new Map<string, number>();
  calls = 0;

  violation(rule: Violation["rule"], detail: string, job?: string): void {
    this.violations.push({ rule, detail, ...(job !== undefined && { job }) });
  }

  failure(reason: string): void {
    this.failures.set(reason, (this.failures.get(reason) ?? 0) + 1);
  }

  /** Records that a request to start `name` is about to be sent. */
  attempt(name: string, planned: PlannedJob): Wanted {
    const now = Date.now();
    const wanted = this.wanted.get(name) ?? { planned, attempts: 0, firstSent: now, lastSent: now, replies: new Set() };
    wanted.attempts += 1;
    wanted.lastSent = now;
    this.wanted.set(name, wanted);
    return wanted;
  }

  /** Records an answer according to which a job exists. All answers about a timer must agree. */
  acknowledged(name: string, as: string, firesAt?: string): void {
    const wanted = this.wanted.get(name) as Wanted;
    if (splitGeneration(as).base !== name) this.violation("unexpected answer", `acknowledged as ${as}`, name);
    wanted.acknowledged ??= as;
    if (firesAt === undefined || as !== wanted.acknowledged) return;
    wanted.firesAt ??= firesAt;
    if (wanted.firesAt !== firesAt) this.violation("changed", `fires at ${wanted.firesAt}, then at ${firesAt}`, name);
  }

  /** Records how and when a job ended according to an answer. All answers must agree. */
  ended(name: string, told: Ending, finishedAt?: string): void {
    const ending = ownOf(told);
    const known = this.endings.get(name) ?? ending;
    this.endings.set(name, known);
    if (!isDeepStrictEqual(known, ending)) {
      this.violation("changed", `first ${preview(known)}, then ${preview(ending)}`, name);
    }
    if (finishedAt === undefined) return;
    const finished = this.#finishedAt.get(name) ?? finishedAt;
    this.#finishedAt.set(name, finished);
    if (finished !== finishedAt) this.violation("changed", `finished at ${finished}, then at ${finishedAt}`, name);
  }
}

export function preview(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/** A job's own outcome. An answer may add the state of a newer attempt, so that and the last full stop are removed. */
export function ownOf(ending: Ending): Ending {
  if (ending.error === undefined) return ending;
  return { ...ending, error: ending.error.replace(/\.? A newer attempt, \S+, is \w+\.$/, "").replace(/\.$/, "") };
}
