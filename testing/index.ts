/** `durable-mcp-edge/testing`: the whole stack in a test, a clock that the test moves, and stand-ins for other servers. */

export { replayHistories } from "./histories.ts";
export { EndsDiffer, type Replayed, type ReplayedOptions, replayed } from "./replay.ts";
export type { LogLine, Program } from "./simulation/program.ts";
export {
  startStack,
  type TestJob,
  type TestStack,
  type TestStackOptions,
  type TestTime,
  ToolCallFailed,
} from "./stack/stack.ts";
export type { StackPart } from "./stack/stack-part.ts";
export {
  startUpstream,
  type Upstream,
  type UpstreamAnswer,
  type UpstreamRequest,
} from "./stack/upstream.ts";
export type { WorkerProcess } from "./stack/worker-process.ts";
