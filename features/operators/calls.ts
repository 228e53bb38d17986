/** The requests and answers of the object through which operators see and act. */

import type { Paused } from "../../core/jobs/paused-jobs.ts";
import type { WaitState, WorkerReport } from "../../core/jobs/worker-report.ts";
import type { News } from "../../core/jobs/worker-stats.ts";
import type { Row } from "../../core/resonate/object-storage.ts";
import type { ServerState } from "./server-state.ts";

/** The tools and methods by which callers end, answer and remove jobs: operators find these calls in the trail. */
export const TRAILED: readonly string[] = [
  ...["cancel_job", "answer_question", "answer_for_user", "forget_jobs", "tasks/cancel", "tasks/update"],
];

/** An alert to operators. It has the name of its paragraph in docs/operations.md. */
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
  /** How many rows its object has written, which the platform bills. */
  rows: number;
  /** How many of its subscriptions have deliveries that fail. */
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

/** The first view of operators. Times that are numbers are milliseconds since the epoch. */
export interface Overview {
  span: Span;
  at: number;
  chart: { time: string[]; ended: number[]; failed: number[] };
  kinds: ({
    kind: string;
    /** The counts of the same time a day earlier, or a week earlier for the span of a week. */
    before: Partial<Record<"started" | "complete" | "failed", number>>;
  } & Partial<Record<"started" | "complete" | "failed" | "cancelled" | "retried" | "ms", number>>)[];
  groups: Group[];
  waits: { kind: string; state: WaitState; n: number; since: number }[];
  /** Whether `waits` counts all waiting jobs. */
  waits_whole: boolean;
  slowest: { kind: string; job: string; ms: number }[];
  workers: (Omit<WorkerReport, "n" | keyof News> & { at: number })[];
  callers: CallerFigure[];
  kinds_paused: string[];
  held: Paused;
  /** Undefined where the Resonate server does not answer. */
  resonate: ServerState | undefined;
  settings: Settings;
  alerts: (Alert & { since: number })[];
}

/** What operators have set for all edges of the deployment. */
export interface Settings {
  /** Whether edges refuse to start jobs. */
  starts_stopped: boolean;
  /** Callers who are refused, as `BLOCKED_CALLERS` names them. */
  blocked: string[];
}

/** Selects jobs. */
export interface Filter {
  state?: WaitState | "failed";
  kind?: string;
  reason?: string;
  /** A caller, by its name in the log or its key. */
  caller?: string;
  /** Only jobs that were reported by then, in milliseconds since the epoch. */
  until?: number;
}

export type Scope = { all: true } | { kind: string } | { caller: string } | { jobs: string[] };

/** An action of an operator. Jobs and callers have their names in the log. */
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
  /** The first outcomes, by job; by the action's name, the reason why it is not done as a whole. */
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

/** A page of the trail: the entries before `before`, newest first; or those after `after`, oldest first. */
export interface TrailPage {
  before?: number | undefined;
  after?: number | undefined;
  limit?: number;
}

/** The calls to the object, by name. */
export interface OperateCalls {
  report(report: WorkerReport): void;
  figure(figure: CallerFigure): void;
  /** Notes that a job was started, by its promise id without the namespace. Comes once in a while for each kind. */
  started(kind: string, job: string): void;
  settings(): Settings;
  note(who: string, what: string, about: object): void;
  /** Notes a command of an operator, which makes several requests, once in the trail. */
  command(who: string, what: string, about: object): void;
  /** Notes a call of a caller in the trail; of its parameters only the jobs and the question. */
  heard(caller: string, what: string, params: object): void;
  overview(span: Span): Promise<Overview>;
  jobs(filter: Filter): Promise<{ jobs: Row[]; count: number }>;
  /** The reports about a job, and its caller's name in the log, if it has one. */
  about(job: string): Promise<{ failure: Row | undefined; wait: Row | undefined; caller?: string }>;
  act(who: string, action: Action): Promise<ActionState>;
  action(n: number): ActionState;
  trail(page: TrailPage): TrailEntry[];
}
