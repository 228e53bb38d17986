/** `durable-mcp-edge/testing`: the whole stack in a test, a clock that the test moves, and stand-ins for other servers. */
export { replayHistories } from "./histories.ts";
export { OutcomesDiffer, type ReplayResult, replay } from "./replay.ts";
export type { ReplayOptions } from "./replay-options.ts";
export type { LogLine, Program } from "./stack/program.ts";
export { startStack, type TestJob, type TestStack, type TestStackOptions } from "./stack/stack.ts";
export type { StackPart } from "./stack/stack-part.ts";
export type { TestTime } from "./stack/test-time.ts";
export { ToolCallFailed } from "./stack/tool-client.ts";
export { startUpstream, type Upstream, type UpstreamAnswer, type UpstreamRequest } from "./stack/upstream.ts";
export type { WorkerProcess } from "./stack/worker-process.ts";
