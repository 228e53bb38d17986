import type { ToolAnnotations } from "@modelcontextprotocol/server";
import * as z from "zod";
import type { RemoteStore } from "../resonate.ts";

/** What a tool has to work with, for one call. */
export interface ToolContext {
  store: RemoteStore;
  /** Milliseconds since the epoch. */
  now: number;
  /** Aborted when the caller goes away. */
  signal: AbortSignal;
  /** Tells the caller how far the call is, when it asked to be told; `progress` must grow from one to the next. */
  reportProgress?: (progress: number, total: number, message: string) => void;
}

/** A tool error: what went wrong, worded so that a model can act on it. */
export class ToolError extends Error {
  override name = "ToolError";
}

export interface ToolDefinition<Input extends z.ZodObject, Output extends z.ZodObject> {
  name: string;
  title: string;
  /** Written for the model that chooses among tools. */
  description: string;
  input: Input;
  output: Output;
  annotations: ToolAnnotations;
  /** Whether a call may take long. Its answer is then streamed from the start, which keeps the connection alive. */
  waits?: boolean;
  /** @throws {ToolError} */
  run(args: z.output<Input>, context: ToolContext): Promise<z.output<Output>>;
}

/** A tool as the server lists and calls it. */
export interface Tool {
  name: string;
  input: z.ZodObject;
  waits: boolean;
  listing: Record<string, unknown>;
  run(args: Record<string, unknown>, context: ToolContext): Promise<Record<string, unknown>>;
}

/** Makes a tool, computing what `tools/list` says of it once. */
export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  definition: ToolDefinition<Input, Output>,
): Tool {
  const { name, title, description, input, output, annotations, waits = false, run } = definition;
  return {
    name,
    input,
    waits,
    listing: {
      name,
      title,
      description,
      inputSchema: z.toJSONSchema(input),
      outputSchema: z.toJSONSchema(output),
      annotations: { title, ...annotations },
    },
    run: (args, context) => run(args as z.output<Input>, context),
  };
}
