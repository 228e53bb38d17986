/** `durable-mcp-edge`: the interface to define tools and to write their durable functions. */

export { fileInput } from "./author/file-input.ts";
export { type DurableFunction, type Implementation, type ImplementOptions, implement } from "./author/implement.ts";
export {
  type DurableTool,
  type DurableToolOptions,
  defineDurableTool,
  type JobToolOptions,
  type StartToolOptions,
} from "./author/job-tool.ts";
export type { LocalService } from "./author/local-service.ts";
export {
  defineTool,
  type Jobs,
  type Started,
  type Tool,
  type ToolContext,
  ToolError,
  type ToolOptions,
  type ToolSchedule,
} from "./author/tool.ts";
export {
  type AllOptions,
  type Answer,
  BudgetExceeded,
  type Budgets,
  type Callback,
  type CallbackOptions,
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
  type Step,
  type StepOptions,
  TimeoutError,
  type TypedQuestion,
  type Winner,
} from "./definitions/context.ts";
export { type EventDefinition, event } from "./definitions/event.ts";
export type { FileData, FileLimits, FileReference, GivenFile } from "./definitions/file.ts";
export { defineJob, hashed, type Job, type JobOptions, type JsonSchema, type Schema } from "./definitions/job.ts";
export { jsonSchema } from "./definitions/json-schema.ts";
export type { ChartView, CountdownView, Series, View } from "./definitions/view.ts";
export { JobStatus } from "./jobs/status.ts";
