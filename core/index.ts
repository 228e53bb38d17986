/** `durable-mcp-edge`: what definitions of tools, and their durable functions, are written with. */
export {
  type Answer,
  type Context,
  DAY,
  HOUR,
  JobFailed,
  type Log,
  type Metrics,
  MINUTE,
  NonRetryableError,
  ProtocolFailure,
  type Question,
  type Retry,
  RetryLater,
  RuleBroken,
  SECOND,
  type Step,
  type StepOptions,
} from "./durable/context.ts";
export { type DurableFunction, type Implementation, type ImplementOptions, implement } from "./durable/implement.ts";
export { defineJob, hashed, type Job, type JobOptions, type JsonSchema, type Schema } from "./jobs/job.ts";
export { jsonSchema } from "./jobs/json-schema.ts";
export { JobStatus } from "./jobs/status.ts";
export { Turns } from "./jobs/turns.ts";
export type { ChartView, CountdownView, Series, View } from "./jobs/view.ts";
export {
  type DurableToolOptions,
  durableTool,
  type JobToolOptions,
  jobTool,
  type StartToolOptions,
} from "./tools/job-tool.ts";
export type { LocalService } from "./tools/local.ts";
export {
  type Jobs,
  plainTool,
  type Started,
  type Tool,
  type ToolContext,
  ToolError,
  type ToolOptions,
} from "./tools/tool.ts";
