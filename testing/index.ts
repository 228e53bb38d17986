/** `durable-mcp-edge/testing`: the whole stack in a test, a clock that the test moves, and stand-ins for other servers. */

export type { LogLine, Program } from "./program.ts";
export { EndsDiffer, type Replayed, type ReplayedOptions, replayed } from "./replayed.ts";
export { startStack, type TestStack, type TestStackOptions, type TestTime, ToolCallFailed } from "./stack.ts";
export type { StackPart } from "./stack-part.ts";
export {
  startUpstream,
  type Upstream,
  type UpstreamAnswer,
  type UpstreamRequest,
} from "./upstream.ts";
export type { WorkerProcess } from "./worker-process.ts";
