/** The requests and answers of the object in which operators see and act. */

import type { News } from "../../core/jobs/operating/figures.ts";
import type { Held } from "../../core/jobs/operating/holds.ts";
import type { WaitState, WorkerReport } from "../../core/jobs/operating/worker-report.ts";
import type { Row } from "../caller/storage.ts";
import type { ServerState } from "./server-state.ts";

/** The tools and methods by which callers end, answer and remove jobs: operators find these calls in the trail. */
export const TRAILED: readonly string[] = [
  ...["cancel_job", "answer_question", "answer_for_user", "forget_jobs", "tasks/cancel", "tasks/update"],
];

/** Something that an operator is told. Its name is that of a paragraph of docs/operations.md. */
export interface Alert {
  name: string;
  says: string;
}

export type Span = "hour" | "day" | "week";

export interface CallerFigure {
  key: string;
  label?: string;
  started: number;
  running: number;
  bytes: number;
  /** How many rows its object has written, which the platform charges for. */
  rows: number;
  /** How many of its subscriptions cannot be delivered to. */
  failing: number;
  /** Whether an alert may begin or end with it. */
  isNews?: boolean;
}

export interface Group {
  kind: string;
  reason: string;
  count: number;
  last_at: number;
}

/** What is shown first. Times that are numbers are milliseconds since the epoch. */
export interface Overview {
  span: Span;
  at: number;
  chart: { time: string[]; ended: number[]; failed: number[] };
  kinds: ({
    kind: string;
    /** In the same time a day before, or a week before where the span is one. */
    before: Partial<Record<"started" | "complete" | "failed", number>>;
  } & Partial<Record<"started" | "complete" | "failed" | "cancelled" | "retried" | "ms", number>>)[];
  groups: Group[];
  waits: { kind: string; state: WaitState; n: number; since: number }[];
  /** Whether all that wait are known. */
  waits_whole: boolean;
  slowest: { kind: string; job: string; ms: number }[];
  workers: (Omit<WorkerReport, "n" | keyof News> & { at: number })[];
  callers: CallerFigure[];
  kinds_paused: string[];
  held: Held;
  /** Undefined where the Resonate server does not answer. */
  resonate: ServerState | undefined;
  settings: Settings;
  alerts: (Alert & { since: number })[];
}

/** What edges heed. */
export interface Settings {
  /** Whether no job is started. */
  starts_stopped: boolean;
  /** Callers who are refused, as `BLOCKED_CALLERS` names them. */
  blocked: string[];
}

/** Which jobs are meant. */
export interface Filter {
  state?: WaitState | "failed";
  kind?: string;
  reason?: string;
  /** A caller, by its name in the log or its key. */
  caller?: string;
  /** Only what was known by then, in milliseconds since the epoch. */
  until?: number;
}

export type Scope = { all: true } | { kind: string } | { caller: string } | { jobs: string[] };

/** What an operator does. Jobs are named as in logs; callers by the names that the log gives them. */
export type Action =
  | { do: "retry"; jobs?: string[]; filter?: Filter; from?: "start" | "last" }
  | { do: "cancel"; jobs?: string[]; filter?: Filter }
  | { do: "pause" | "resume"; of: Scope }
  | { do: "stop-starts" | "allow-starts" }
  | { do: "block" | "unblock"; caller: string };

export interface ActionState {
  n: number;
  total: number;
  /** How many jobs are done. */
  done: number;
  is_over: boolean;
  /** The first outcomes, by job. */
  outcomes: Record<string, string>;
}

export interface TrailEntry {
  n: number;
  /** ISO 8601. */
  at: string;
  who: string;
  what: string;
  about: Record<string, unknown>;
}

/** What the object is asked, by name. */
export interface OperateCalls {
  report(report: WorkerReport): void;
  figure(figure: CallerFigure): void;
  /** A job has been started: one of a kind in a while, by its promise id without the namespace. */
  started(kind: string, job: string): void;
  settings(): Settings;
  note(who: string, what: string, about: object): void;
  /** What a caller has called, of which the jobs alone are noted. */
  heard(caller: string, what: string, params: object): void;
  overview(span: Span): Promise<Overview>;
  jobs(filter: Filter): Promise<{ jobs: Row[]; count: number }>;
  /** What was reported of a job, and its caller's name in the log, where it has one. */
  about(job: string): Promise<{ failure: Row | undefined; wait: Row | undefined; caller?: string }>;
  act(who: string, action: Action): Promise<ActionState>;
  action(n: number): ActionState;
  trail(page: { before?: number; after?: number; limit?: number }): TrailEntry[];
}
