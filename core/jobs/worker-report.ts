/** A worker's report to the edge, for operators: what has happened since its last report, and its state. */

export const WAIT_STATES = ["sleeping", "answer", "job", "failing", "blocked", "worker"] as const;

/** What a job waits for that is not executing, or why it makes no progress. `worker`: no worker is known to have taken it. */
export type WaitState = (typeof WAIT_STATES)[number];

export interface FailedJob {
  /** The promise id without the namespace, as in logs. */
  job: string;
  kind: string;
  /** The first line of the error. */
  reason: string;
  stack?: string;
  /** In milliseconds since the epoch. */
  at: number;
}

/** A job that waits; without a state it no longer waits. */
export interface WaitingJob {
  job: string;
  kind: string;
  state?: WaitState;
  /** Why it is blocked, failing or not taken, or when it wakes up; undefined for a job that has just been started. */
  says?: string;
}

export interface WorkerReport {
  /** The id of the process. */
  worker: string;
  /** Set for an account's runners, which sleep until there is a job and report nothing in the meantime. */
  isRunner?: true;
  /** Grows with each report, so that a report that is sent again counts once. */
  n: number;
  group: string;
  /** Whether jobs reach it. */
  connected: boolean;
  /** The form in which it stores jobs. */
  form: number;
  /** The versions of the kinds that it runs. */
  kinds: Record<string, number>;
  /** How many jobs run, how many wait for a slot, and how many of each kind may run. */
  slots: { running: number; waiting: number; most: number };
  /**
   * What happened, by kind and name: `started`, `complete`, `failed`, `cancelled`, `retried`, {@link FAILED_PREFIX} with a reason, and
   * `ms`, the sum of durations.
   */
  counts: [kind: string, name: string, n: number][];
  failed: FailedJob[];
  waits: WaitingJob[];
  /** The longest of the jobs that ended, by kind. */
  slowest: [kind: string, job: string, ms: number][];
}

/** How many failures and how many waiting jobs a report names at most. Further ones are named in the next reports. */
export const MAX_NAMED_JOBS = 200;

/** How many pairs of kind and count a report, or a period, tells apart at most. */
export const MAX_NAMED_COUNTS = 200;

/** The prefix of a count whose name is a reason. */
export const FAILED_PREFIX = "failed: ";

/** The longest reason and stack of a report, in characters. */
const MAX_REASON_CHARACTERS = 200;
export const MAX_STACK_CHARACTERS = 2_000;

/** The first line of an error, by which failures are grouped. */
export const firstLine = (reason: string): string => (reason.split("\n", 1)[0] ?? "").slice(0, MAX_REASON_CHARACTERS);

/** The variables that give a deployment operators; any one of them is enough. */
export interface OperatorEnv {
  /** A JSON list of `{"name", "sha256"}`, as `npm run token` prints them. */
  OPERATOR_TOKENS?: string;
  /** The scope of OAuth tokens whose callers are operators. */
  OAUTH_OPERATE_SCOPE?: string;
  /** `local`: without authentication, everyone on this machine is an operator. */
  OPERATE?: string;
}

/** Whether there are operators. Nobody else reads reports. */
export const hasOperators = ({ OPERATOR_TOKENS, OAUTH_OPERATE_SCOPE, OPERATE }: OperatorEnv): boolean =>
  Boolean(OPERATOR_TOKENS || OAUTH_OPERATE_SCOPE || OPERATE);
