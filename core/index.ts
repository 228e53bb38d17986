/** `durable-mcp-edge`: the interface to define tools and to write their durable functions. */

export {
  type AllOptions,
  type Answer,
  BudgetExceeded,
  type Budgets,
  type Callback,
  type CallbackOptions,
  type CheckedStepOptions,
  type ChildJob,
  type Context,
  DAY,
  DeadlineExceeded,
  type ErrorClass,
  HOUR,
  JobCancelled,
  type JobContext,
  JobFailed,
  type Log,
  type Metrics,
  MINUTE,
  NondeterminismError,
  NonRetryableError,
  ProtocolFailure,
  parseRetryAfter,
  type Question,
  type Retry,
  RetryableError,
  SECOND,
  type Spent,
  type ChildJobOptions,
  type Step,
  StepInterrupted,
  type StepOptions,
  TimeoutError,
  type TypedQuestion,
  type Winner,
} from "./author/context.ts";
export { type EventDefinition, event } from "./author/event.ts";
export type { FileData, FileLimits, FileReference, InputFile } from "./author/file.ts";
export { fileInput } from "./author/file-input.ts";
export { type DurableFunction, type Implementation, type ImplementOptions, implement } from "./author/implement.ts";
export { defineJob, hashed, type Job, type JobOptions, type JsonSchema, type Schema } from "./author/job.ts";
export { jsonSchema } from "./author/json-schema.ts";
export type { LocalService } from "./author/local-service.ts";
export type { ChartView, CountdownView, Series, View } from "./author/view.ts";
export { JobStatus } from "./jobs/status.ts";
export {
  type DurableTool,
  type DurableToolOptions,
  defineDurableTool,
  type JobToolOptions,
  type StartToolOptions,
} from "./tools/job-tool.ts";
export {
  defineTool,
  type Jobs,
  type Started,
  type Tool,
  type ToolContext,
  ToolError,
  type ToolOptions,
  type ToolSchedule,
} from "./tools/tool.ts";
