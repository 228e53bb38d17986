/** The face of this layer: jobs as durable promises, their records, and the seams at their start and execution. */

export {
  type CallerLimits,
  type CallerRecord,
  type CallerRecords,
  KIND_TAG,
  kindIn,
  type ListedJob,
  type ListQuery,
  labelsOf,
  type ObservedJob,
  type ReserveAnswer,
  type StartedJob,
  startedJob,
} from "./caller-record.ts";
export { BEGIN_TABLE, type CallerRow, type CallerRowPage, type CallerRowPosition } from "./caller-rows.ts";
export { Claims } from "./claims.ts";
export {
  activityOf,
  type CurrentJob,
  countOf,
  currentJobOf,
  doingOf,
  howToAnswer,
  inputRequestsOf,
  lineOf,
  withoutFeed,
} from "./current-job.ts";
export { type DurablePromise, firstSeed, ownerOf, parentOf, type Resumption, seedOf } from "./durable-promise.ts";
export { type Latest, latestOf, type PartialRange, partialOf } from "./feed/partial.ts";
export { AnswerEntry, activityIn, FeedEntry } from "./feed/progress-feed.ts";
export { type NewestEntry, ProgressFeeds } from "./feed/progress-feeds.ts";
export { isOpen, MAX_OPEN_ENTRIES, type TimelineEntry, timelineOf } from "./feed/timeline.ts";
export { formatMismatch, JOB_FORMAT_HEADER, JOB_FORMAT_VERSION } from "./form.ts";
export type { JobCall } from "./job-call.ts";
export {
  type EventFilter,
  type EventQuery,
  type EventReader,
  type EventSource,
  INTEREST_MS,
  isEmittedByJob,
  JOB_ENDED,
  JOB_OUTPUT,
  JOB_PROGRESS,
  JOB_QUESTION,
  type JobEvent,
  type JobFilter,
  type LogPage,
  type LogQuery,
  type Occurrence,
} from "./job-events.ts";
export type { CancellationOutcome, JobAccess, JobFeature, JobStart, Requester } from "./job-feature.ts";
export { type LineLog, logOf, reasonOf, stackOf } from "./line-log.ts";
export { listJobs } from "./list-jobs.ts";
export { Names } from "./names.ts";
export type { ObjectPart, ObjectRecord, PartHost, PartTables, RecordedJobs } from "./object-part.ts";
export type { ListenerView, ObjectView, ScheduleView, SubscriptionView, ViewMethods } from "./object-view.ts";
export type {
  Action,
  ActionState,
  Alert,
  AuditEntry,
  CallerUsage,
  Charges,
  Filter,
  FoundJob,
  FoundJobs,
  Group,
  OneJob,
  Overview,
  Preview,
  RefusedRequest,
  Scope,
  ServerState,
  Settings,
  Span,
} from "./operators-api.ts";
export { MAX_CREATION_DELAY_MS, type Orders, positionIn, startsIn } from "./order.ts";
export { type Cursor, cursorIn, type OwnJob, type OwnStep, searchPage, textOf, wordsOf } from "./own-jobs.ts";
export { BESIDES_KINDS, isPaused, NOTHING_PAUSED, type Paused, PausedJobs, pausedIn } from "./paused-jobs.ts";
export { ReadRoom } from "./read-room.ts";
export { entryOfJob, entryOfStart } from "./record-entry.ts";
export { RemoteStore } from "./remote-store.ts";
export {
  type Batch,
  callersOf,
  isReportToken,
  MAX_REPORT,
  NO_OPERATORS_HEADER,
  REPORTS_PATH,
  type ReportedJob,
  reportToken,
} from "./reports.ts";
export { lengthOf, type Reservation, reservationFor, tagOf } from "./reservation.ts";
export { DAYS_PATTERN, DEFAULT_DAYS, retentionOf } from "./retention.ts";
export { retryJob } from "./retry-job.ts";
export type { Settlement, SettlementChannel, SettlementSource } from "./settlements.ts";
export { newestGeneration, newerGeneration, startJob } from "./start.ts";
export {
  JobStatus,
  JobView,
  Json,
  mayShow,
  Partial,
  ResultSummary,
  stateOf,
  statusOf,
  undecryptableView,
  viewOf,
  WaitingFor,
} from "./status.ts";
export type { Ending, JobCode, JobMemory, JobRun, JobTask, NextRun, Observe, TaskEvent } from "./task-feature.ts";
export { wakeupOf } from "./unhandled.ts";
export { followPromises } from "./waiting/follow.ts";
export { awaitSettled } from "./waiting/waiting.ts";
export {
  FAILED_PREFIX,
  type FailedJob,
  firstLine,
  hasOperators,
  MAX_NAMED_COUNTS,
  type OperatorEnv,
  WAIT_STATES,
  type WaitingJob,
  type WaitState,
  type WorkerReport,
} from "./worker-report.ts";
export { type RunnerNews, type WorkerState, WorkerStats } from "./worker-stats.ts";
