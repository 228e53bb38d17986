/** The lease on a job's task, as an execution uses it. */
import type { Step } from "../author/context.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import type { JournalEntry } from "./journal.ts";

/**
 * When a new promise settles: at once, at `due`, or when somebody settles it, by `until` and the job's deadline at the
 * latest. In milliseconds since the epoch.
 */
export type When = "resolved" | { due: number } | { until: number };

/** The requests that an execution may make of the server, under the lease on the job's task. */
export interface Lease {
  readonly id: string;
  /** The id of the run whose records are written: see `runs.ts`. */
  readonly run: string;
  /** The id of the task, which is the job's own or that of its clean-up. */
  readonly taskId: string;
  /** The version of the task: counts the leases on it from 1, so another worker has another version. */
  readonly version: number;
  /**
   * Creates a promise of the job, or finds it. `outsideBytes`: how much was stored with it outside of the job's promises.
   *
   * @throws {LeaseLost} @throws {RecordRefused}
   */
  create(id: string, param: unknown, when: When, outsideBytes?: number): Promise<PromiseRecord>;
  get(id: string): Promise<PromiseRecord | undefined>;
  /** Reads a promise and subscribes to news of it, if news can come; `fresh`: as the server has it now. */
  watch(id: string, fresh: boolean): Promise<PromiseRecord | undefined>;
  /**
   * If the job has been cancelled, leaves the outcome of a step that was under way to the clean-up: its record, or
   * nothing if the step was cut off.
   */
  leave?(path: string, entry: JournalEntry | undefined): Promise<void>;
  /** Suspends the task until one of the promises settles. False if one has settled already. @throws {LeaseLost} */
  suspend(ids: readonly string[]): Promise<boolean>;
  /** Called when a watched promise may have settled, with the promise where the news holds it. */
  onNews: (promise?: PromiseRecord) => void;
}

/** The lease that a step runs under, for helpers which store promises of its job. */
export const leaseOfStep = new WeakMap<Step, Lease>();

/**
 * Why an execution cannot continue in this worker:
 *
 * - `taken`: the server says that the task is another worker's, or has ended;
 * - `lapsed`: the lease was not renewed in time;
 * - `settled`: the job's promise was settled by its cancellation or by another worker;
 * - `unreachable`: the server did not answer for as long as a lease lasts;
 * - `refused`: the server refuses a request for good, and would refuse it from any worker;
 * - `ended`: this execution has ended already, or is no longer wanted here.
 */
export type LeaseLossReason = "taken" | "lapsed" | "settled" | "unreachable" | "refused" | "ended";

/** This worker must not continue the task. */
export class LeaseLost extends Error {
  override name = "LeaseLost";
  readonly reason: LeaseLossReason;

  constructor(message: string, { reason, cause }: { reason: LeaseLossReason; cause?: unknown }) {
    super(message, cause === undefined ? undefined : { cause });
    this.reason = reason;
  }
}

/** Aborts the execution of a job that was settled meanwhile. Shared, because each new error captures a stack. */
export const SETTLED = new LeaseLost("it has been settled meanwhile", { reason: "settled" });
