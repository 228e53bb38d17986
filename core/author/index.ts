/** The face of this layer: what authors of tools and durable functions write against. */

export { ANYONE, type Caller, callerOf, hashIn, keysOf } from "./caller.ts";
export {
  type Answer,
  type Budgets,
  type CheckedStepOptions,
  type Context,
  DAY,
  DeadlineExceeded,
  type ErrorClass,
  HOUR,
  JobCancelled,
  type Log,
  type Metrics,
  MINUTE,
  NondeterminismError,
  NonRetryableError,
  type Question,
  RetryableError,
  SECOND,
  type Startable,
  type ChildJobOptions,
  type Step,
  StepInterrupted,
  type StepOptions,
} from "./context.ts";
export { EVENT, type EventDefinition, LEFT_OUT } from "./event.ts";
export {
  FILE_PATH,
  FILES_KEY,
  type FileData,
  type FileLimits,
  type FileReference,
  filesIn,
  fileUri,
  type InputFile,
  isFile,
  isOfType,
  isText,
  MAX_FILE,
  MAX_FILE_NAME,
  partsOfUri,
  referringPart,
  sizeInWords,
} from "./file.ts";
export {
  authorFunctions,
  type DurableFunction,
  type Implementation,
  implement,
  nextArgs,
  problemsOf,
} from "./implement.ts";
export {
  conflicts,
  defineJob,
  hashed,
  type Job,
  type JsonSchema,
  NotStarted,
  REQUEST_TAG,
  VERSION_TAG,
} from "./job.ts";
export type { LocalService } from "./local-service.ts";
export { isPublicAddress, isPublicHost } from "./public-address.ts";
export { TRACE_TAG, traceIdIn, traceparentIn } from "./trace-context.ts";
export { fromStored, isFinal, storable, storedError, toStored, wordsOf } from "./values.ts";
export type { ChartView, View } from "./view.ts";
