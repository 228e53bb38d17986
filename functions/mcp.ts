import {
  type CallToolResult,
  createMcpHandler,
  isInputRequiredResult,
  type McpServerFactory,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import packageJson from "../package.json" with { type: "json" };
import { callerOf } from "./caller.ts";
import { logError } from "./log.ts";
import { NameTaken, type RemoteStore, ResonateUnavailable } from "./resonate/store.ts";
import type { TaskHandles } from "./tasks/handle.ts";
import { createTask, declaresTasks, missingTasksCapability, registerTaskMethods } from "./tasks/methods.ts";
import { subscribe } from "./tasks/subscribe.ts";
import { TASKS } from "./tasks/task.ts";
import { explain } from "./tools/arguments.ts";
import { type Tool, type ToolContext, ToolError } from "./tools/tool.ts";

/** The largest request body that is read, in bytes. */
const MAX_BODY = 1_000_000;

/**
 * How often a stream says that it is alive, in milliseconds. A caller that has gone away is noticed when something is
 * written to it, so this is also how long a wait goes on for nobody.
 */
const KEEP_ALIVE = 2_000;

/** How long a client may keep what does not change between deployments, in milliseconds. */
const CACHE = { ttlMs: 5 * 60_000, cacheScope: "public" } as const;

const IDENTITY = { name: packageJson.name, title: "Durable MCP tools", version: packageJson.version };

const INSTRUCTIONS = `\
Tools for work that outlasts a tool call. Starting a job returns a name at once; the job goes on by itself, survives \
crashes and restarts, and its result stays available under that name in every later conversation.
- Start: start_gathering (a month of historical weather) and set_timer return at once. Starting the same job again is \
safe: it finds the one that is there, and never runs it twice.
- Probe: probe_status and get_timer_status tell how jobs are without waiting.
- Await: await_result waits for results. Names it returns as running have not failed: await them again, or tell the \
user and come back later. Start several jobs first, then await them together.
- Later: keep the names (or start again with the same arguments) to collect results in another conversation.
When a call fails because the Resonate server cannot be reached, repeat it as it was.`;

export type Mcp = (request: Request) => Promise<Response>;

export interface McpOptions {
  store: RemoteStore;
  tools: readonly Tool[];
  /** Absent where no key seals task ids: then no tasks are offered. */
  handles: TaskHandles | undefined;
}

/** Serves MCP over streamable HTTP, statelessly: the 2026-07-28 revision, and 2025-era clients on the same URL. */
export function createMcp({ store, tools, handles }: McpOptions): Mcp {
  const toolByName = new Map(tools.map((tool) => [tool.name, tool]));
  const toolList = { tools: tools.map((tool) => tool.listing) };
  const tasks = handles && { store, handles };

  const listTools = () => toolList as never;
  const callTool = async (request: { params: CallParams }, context: ServerContext) => {
    const { name, arguments: args = {} } = request.params;
    const tool = toolByName.get(name);
    if (!tool) {
      const known = [...toolByName.keys()].join(", ");
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name}. The tools are ${known}.`);
    }
    const asTask = tasks !== undefined && declaresTasks(context);
    if (tool.tasksOnly && !asTask) throw missingTasksCapability();
    const toolContext = toolContextOf(store, context, asTask);
    return answer(tool, args, toolContext, async (parsed) => {
      if (!asTask || !tool.start) return tool.call(parsed, toolContext);
      const started = await tool.start(parsed, toolContext);
      return isInputRequiredResult(started) ? started : createTask(tasks, callerOf(context), started);
    });
  };

  const createServer: McpServerFactory = ({ era }) => {
    const offersTasks = tasks !== undefined && era === "modern";
    const server = new Server(IDENTITY, {
      capabilities: { tools: {}, ...(offersTasks && { extensions: { [TASKS]: {} } }) },
      instructions: INSTRUCTIONS,
      cacheHints: { "tools/list": CACHE, "server/discover": CACHE },
    });
    server.setRequestHandler("tools/list", listTools);
    server.setRequestHandler("tools/call", callTool as never);
    if (offersTasks) registerTaskMethods(server, tasks);
    return server;
  };
  const options = { maxRequestBodySize: MAX_BODY, keepAliveMs: KEEP_ALIVE };
  const handler = createMcpHandler(createServer, options);
  const streamingHandler = createMcpHandler(createServer, { ...options, responseMode: "sse" });

  return (request) => {
    // The routing headers must agree with the body, which the handlers see to.
    if (tasks && request.headers.get("mcp-method") === "subscriptions/listen") {
      return subscribe(tasks, IDENTITY, "", request, handler.fetch);
    }
    const waits = toolByName.get(request.headers.get("mcp-name") ?? "")?.waits;
    return (waits ? streamingHandler : handler).fetch(request);
  };
}

type CallParams = { name: string; arguments?: Record<string, unknown> | undefined };

function toolContextOf(store: RemoteStore, { mcpReq }: ServerContext, tasks: boolean): ToolContext {
  const { signal, _meta, inputResponses = {} } = mcpReq;
  const progressToken = _meta?.progressToken;
  const context: ToolContext = { store, signal, tasks, inputResponses, now: Date.now() };
  if (progressToken !== undefined) {
    context.reportProgress = (progress, total, message) => {
      const params = { progressToken, progress, total, message };
      // A notification that cannot be delivered has nobody to be delivered to.
      mcpReq.notify({ method: "notifications/progress", params }).catch(() => {});
    };
  }
  return context;
}

/** Checks the arguments, runs the call, and words what went wrong for a model. */
async function answer<Result>(
  { name, input }: Tool,
  args: Record<string, unknown>,
  { signal }: ToolContext,
  run: (parsed: Record<string, unknown>) => Promise<Result>,
): Promise<Result | CallToolResult> {
  const parsed = input.safeParse(args);
  if (!parsed.success) {
    const problems = explain(input, parsed.error, args);
    return errorResult([`Nothing was done: ${name} does not accept these arguments.`, ...problems].join("\n"));
  }
  try {
    return await run(parsed.data);
  } catch (error) {
    if (error instanceof ToolError) return errorResult(error.message);
    if (error instanceof NameTaken) {
      return errorResult(
        `The name ${error.message} is taken on the Resonate server by something that is not a job of this server. Nothing was started.`,
      );
    }
    if (error instanceof ResonateUnavailable) {
      if (!signal.aborted) logError("resonate unavailable", error.cause ?? error);
      return errorResult(
        `The Resonate server, which keeps the jobs, is unavailable: ${error.message}. No job is lost. Repeat the same call later: that is safe, and never starts a job twice.`,
      );
    }
    logError("tool failed", error);
    return errorResult("Something went wrong inside the server. Repeating the same call is safe.");
  }
}

function errorResult(text: string): CallToolResult {
  return { isError: true, content: [{ type: "text", text }] };
}
