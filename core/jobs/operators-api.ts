/** What the edge serves to operators: their page and the command line read it. Times that are numbers are milliseconds since the epoch. */

import type { TaskRecord } from "../resonate/connection/protocol.ts";
import type { FeedEntry } from "./feed/progress-feed.ts";
import type { TimelineEntry } from "./feed/timeline.ts";
import type { Paused } from "./paused-jobs.ts";
import type { JobStatus, JobView } from "./status.ts";
import type { WaitState, WorkerReport } from "./worker-report.ts";
import type { News } from "./worker-stats.ts";

/** An alert to operators. It has the name of its paragraph in docs/operations.md. */
export interface Alert {
  name: string;
  says: string;
}

export type Span = "hour" | "day" | "week";

export interface CallerUsage {
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
  waits_complete: boolean;
  slowest: { kind: string; job: string; ms: number }[];
  workers: (Omit<WorkerReport, "n" | keyof News> & { at: number })[];
  callers: CallerUsage[];
  kinds_paused: string[];
  /** What is paused besides kinds. */
  paused: Paused;
  /** Undefined if the Resonate server does not answer. */
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
  /** What is said of each, as the list shows it; only of jobs that failed or are blocked. */
  reason?: string;
  /** A caller, by its name in the log or its key. */
  caller?: string;
}

/** A job that a filter finds. */
export interface FoundJob {
  job: string;
  kind: string;
  state: WaitState | "failed";
  says: string;
  worker: string;
  /** In milliseconds since the epoch. */
  at: number;
}

/** The newest jobs of a filter, and how many there are. */
export interface FoundJobs {
  count: number;
  jobs: FoundJob[];
}

/** The jobs of a filter at one moment. An action that names the preview acts on exactly these. */
export interface Preview extends FoundJobs {
  /** Its number. It is kept for an hour, and until enough newer ones are made. */
  preview: number;
  /** How many of the jobs an action acts on: the newest ones if there are more than one action may have. */
  targets: number;
}

/** Why a request of an operator is not carried out. */
export interface RefusedRequest {
  refused: string;
}

/** A job as operators see it: what its caller sees, and its lease, versions and sizes. */
export interface OneJob extends Omit<JobView, "result" | "newer" | "doing"> {
  /** Its name in the log. */
  job: string;
  kind: string;
  /** Arguments and result are given only on request. */
  args?: unknown;
  result?: unknown;
  /** ISO 8601. */
  deadline: string;
  bytes: number;
  version: number | undefined;
  deployed_version: number;
  /** The key of its caller, or the job that started it. */
  caller: string;
  request: string | undefined;
  doing: Omit<FeedEntry, "questions">;
  questions: { question: string; message: string }[];
  /** How often a worker has taken it, and the state of the lease. */
  lease: TaskRecord | undefined;
  timeline: (TimelineEntry & { bytes: number | undefined })[];
  newer?: { job: string; status: JobStatus };
}

export type Scope = { all: true } | { kind: string } | { caller: string } | { jobs: string[] };

/** The jobs of an action: their names, or the number of a {@link Preview}. */
export type Targets = { jobs: string[] } | { preview: number };

/** An action of an operator. Jobs and callers have their names in the log. */
export type Action =
  | ({ do: "retry"; from?: "start" | "last" } & Targets)
  | ({ do: "cancel" } & Targets)
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

export interface AuditEntry {
  n: number;
  /** ISO 8601. */
  at: string;
  who: string;
  what: string;
  about: Record<string, unknown>;
}

/** Usage that the platform bills: `awake` in milliseconds, at 0.125 GB. */
export interface Charges {
  /** Including alarms. */
  requests: number;
  read: number;
  written: number;
  awake: number;
}

export interface ServerState {
  /** How long it took to answer, in milliseconds. */
  ms: number;
  /** `embedded` and `account` come with this package. For another server it is the release whose rules the server follows. */
  release: "embedded" | "account" | "0.9.8" | "0.10";
  /** How many bytes are stored, and how many can be; undefined where the server does not report that. */
  size?: number;
  maxBytes?: number;
  /** Billed usage by UTC days; undefined where the server runs on the operator's own machine. */
  today?: Charges;
  yesterday?: Charges;
}
