/** The face of this layer: the execution of durable functions by replay of their journal. */

export { type Clock, durationInWords, MAX_TIMER_MS, machineClock } from "./clock.ts";
export { Execution } from "./execution.ts";
export { type Scope, scopesOf } from "./guard/closure.ts";
export { currentPass, outside } from "./guard/guard.ts";
export { callbackOf } from "./guard/seeded.ts";
export type { History, HistoryEnd } from "./history.ts";
export { type Lease, LeaseLost, SETTLED } from "./job-lease.ts";
export { Journal, type JournalEntry, JournalRecord, maxUnderWay } from "./journal.ts";
export { type LeasedTask, type Send, TaskLease, type Watch } from "./lease/lease.ts";
export { type CallbackParam, escapeName, nameIn } from "./replay/commands/commands.ts";
export { beginRun, newestRun, readNewest, runIn } from "./runs.ts";
export type { ChildStart, ExecutionEnd, JobEnd, Runnable, Runtime } from "./runtime.ts";
export type { ExecutionState, Run } from "./state.ts";
export { type Attempt, type JobOfStep, type Objection, RecordRefused, type StepFeature } from "./step-feature.ts";
