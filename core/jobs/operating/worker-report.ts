/** What a worker reports to the edge, for operators: what has happened since its last report, and how it is. */

export const WAIT_STATES = ["sleeping", "answer", "job", "failing", "blocked", "worker"] as const;

/** What a job waits for that does not execute, or why it does not get on. `worker`: as far as is known, none takes it. */
export type WaitState = (typeof WAIT_STATES)[number];

export interface FailedJob {
  /** The promise id without the namespace, as logs have it. */
  job: string;
  kind: string;
  /** The first line of the error. */
  reason: string;
  stack?: string;
  /** In milliseconds since the epoch. */
  at: number;
}

/** A job that waits; without a state it does so no more. */
export interface WaitingJob {
  job: string;
  kind: string;
  state?: WaitState;
  /** Why it is blocked, failing or not taken, or when it wakes up. A job that has just been started says nothing. */
  says?: string;
}

export interface WorkerReport {
  /** The id of the process. */
  worker: string;
  /** The runners of an account, which sleep until there is a job, and say nothing meanwhile. */
  isRunner?: true;
  /** Grows with each report: one that is sent again counts once. */
  n: number;
  group: string;
  /** Whether jobs reach it. */
  connected: boolean;
  /** The form in which it keeps jobs; 1 where it tells none. */
  form?: number;
  /** The versions of the kinds that it runs. */
  kinds: Record<string, number>;
  /** How many jobs run and wait for a slot, and how many of a kind may run. */
  slots: { running: number; waiting: number; most: number };
  /**
   * What happened, by kind and name: `started`, `complete`, `failed`, `cancelled`, `retried`, {@link FAILED} with a reason, and
   * `ms`, the sum of durations.
   */
  counts: [kind: string, name: string, n: number][];
  failed: FailedJob[];
  waits: WaitingJob[];
  /** The longest of the jobs that ended, by kind. */
  slowest: [kind: string, job: string, ms: number][];
}

/** The most failures and waits that one report names; of more it tells the number alone. */
export const MOST_NAMED = 200;

/** The most kinds and reasons that one report, or one period, tells apart. */
export const MOST_NAMES = 200;

/** Before the reason in the name of a count. */
export const FAILED = "failed: ";

/** The longest reason and stack, in characters. */
export const LONGEST = { reason: 200, stack: 2_000 };

/** The first line of an error, by which failures are grouped. */
export const firstLine = (reason: string): string => (reason.split("\n", 1)[0] ?? "").slice(0, LONGEST.reason);

/** The variables by any of which a deployment has operators. */
export interface OperatorEnv {
  /** A JSON list of `{"name", "sha256"}`, as `npm run token` prints them. */
  OPERATOR_TOKENS?: string;
  /** The scope of OAuth tokens whose callers are operators. */
  OAUTH_OPERATE_SCOPE?: string;
  /** `local`: without authentication, who asks on this machine is an operator. */
  OPERATE?: string;
}

/** Whether there are operators, who are all that read reports. */
export const hasOperators = ({ OPERATOR_TOKENS, OAUTH_OPERATE_SCOPE, OPERATE }: OperatorEnv): boolean =>
  Boolean(OPERATOR_TOKENS || OAUTH_OPERATE_SCOPE || OPERATE);
