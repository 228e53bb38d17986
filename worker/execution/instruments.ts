/** The log, metrics and traces that executions use, and how they describe errors. Must not import from Node. */
import type { Log, Metrics } from "../../core/author/context.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import type { Figures } from "../../features/operators/figures.ts";

/** A structured log. */
export interface LineLog {
  debug: WriteLine;
  info: WriteLine;
  warn: WriteLine;
  error: WriteLine;
  /** A log that adds these fields to each line. */
  child(fields: object): LineLog;
}

interface WriteLine {
  (fields: object, message: string): void;
  (message: string): void;
}

/** The log as steps get it. */
export function logOf(log: LineLog): Log {
  return {
    debug: (message, fields = {}) => log.debug(fields, message),
    info: (message, fields = {}) => log.info(fields, message),
    warn: (message, fields = {}) => log.warn(fields, message),
    error: (message, fields = {}) => log.error(fields, message),
  };
}

/** Counters and traces. `job` is a kind of job. */
export interface Instruments {
  /** The metrics that a job's function records itself; the log is the job's. */
  metrics(log: LineLog): Metrics;
  settled(job: string, outcome: "complete" | "failed"): void;
  retried(job: string): void;
  leaseLost(job: string): void;
  /** The parent span of a job's executions, as a `traceparent`. */
  spanOf(promise: PromiseRecord): string | undefined;
  /** The current span, as a `traceparent`. */
  surroundingSpan(): string | undefined;
  /** Runs `work` as a span below `parent`, or else below the current one. */
  inSpan<Result>(
    name: string,
    about: { attributes: Record<string, string | number>; kind?: "consumer"; parent?: string | undefined },
    work: () => Promise<Result>,
    describe?: (result: Result) => Record<string, string | number>,
  ): Promise<Result>;
}

/** Tells the edge at once what its callers' objects would otherwise learn later. */
export interface Reports {
  /** The figures for operators. */
  readonly figures: Figures;
  ended(promise: PromiseRecord): void;
  /** A durable function has started the job with this promise id. */
  started(id: string): void;
}

/** The message of an error, with the code or message of its cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return `${error.message} (${"code" in cause ? cause.code : cause.message})`;
}

/** The longest stack that is logged, in characters. */
const MAX_STACK = 10_000;

/** The stack of an error, for the author of the function that threw it; callers never see it. Never throws. */
export function thrown(error: Error): { stack: string } | undefined {
  try {
    const { stack, cause } = error;
    const below = cause instanceof Error ? `\n  caused by ${cause.stack ?? cause.message}` : "";
    return { stack: `${stack ?? ""}${below}`.slice(0, MAX_STACK) };
  } catch {
    return undefined; // a getter of the error throws
  }
}
