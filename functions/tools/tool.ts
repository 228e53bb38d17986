import * as z from "zod";
import { structured } from "../present.ts";
import type { CallToolResult, InputRequiredResult, ToolAnnotations } from "../protocol.ts";
import type { DurablePromise, RemoteStore } from "../resonate/store.ts";

/** What a tool has to work with, for one call. */
export interface ToolContext {
  store: RemoteStore;
  /** Milliseconds since the epoch. */
  now: number;
  /** Aborted when the caller goes away. */
  signal: AbortSignal;
  /** Whether the client understands tasks, and so can be asked questions while a job runs. */
  tasks: boolean;
  /** What the client answered to an input-required result, by key. */
  inputResponses: Record<string, unknown>;
  /** Tells the caller how far the call is, when it asked to be told; `progress` must grow from one to the next. */
  reportProgress?: (progress: number, total: number, message: string) => void;
}

/** A tool error: what went wrong, worded so that a model can act on it. */
export class ToolError extends Error {
  override name = "ToolError";
}

/** What every tool says of itself. */
export interface ToolDescription<Input extends z.ZodObject, Output extends z.ZodObject> {
  name: string;
  title: string;
  /** Written for the model that chooses among tools. */
  description: string;
  input: Input;
  output: Output;
  annotations: ToolAnnotations;
  /** Whether a call may take long. Its answer is then streamed from the start, which keeps the connection alive. */
  waits?: boolean;
}

/** A tool as the server lists and calls it; arguments are those that `input` has parsed. */
export interface Tool {
  name: string;
  input: z.ZodObject;
  waits: boolean;
  listing: Record<string, unknown>;
  /** @throws {ToolError} */
  call(args: Record<string, unknown>, context: ToolContext): Promise<CallToolResult | InputRequiredResult>;
  /**
   * Present where the tool's work is one job, which is a task to a client that understands tasks.
   *
   * @throws {ToolError}
   */
  start?(args: Record<string, unknown>, context: ToolContext): Promise<DurablePromise | InputRequiredResult>;
  /** Whether the tool can serve only clients that understand tasks. */
  tasksOnly?: boolean;
}

/** Makes a tool of a function from arguments to structured output. */
export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  tool: ToolDescription<Input, Output> & {
    run(args: z.output<Input>, context: ToolContext): Promise<z.output<Output>>;
  },
): Tool {
  return {
    ...describeTool(tool),
    call: async (args, context) => structured(await tool.run(args as z.output<Input>, context)),
  };
}

/** What `tools/list` says of a tool, computed once. */
export function describeTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  tool: ToolDescription<Input, Output>,
): Pick<Tool, "name" | "input" | "waits" | "listing"> {
  const { name, title, description, input, output, annotations, waits = false } = tool;
  const inputSchema = z.toJSONSchema(input);
  const outputSchema = z.toJSONSchema(output);
  return {
    name,
    input,
    waits,
    listing: { name, title, description, inputSchema, outputSchema, annotations: { title, ...annotations } },
  };
}
