/** Removes arguments by which a model says that the user agreed, for deployments that do not take a model's word for it. */
import * as z from "zod";
import type { JsonSchema } from "../../core/author/index.ts";
import type { Tool } from "../../core/tools/index.ts";

/** The tool without its arguments of consent: they are not advertised, and are treated as unknown if a client sends them. */
export function withoutConsent(tool: Tool): Tool {
  const { consent = [], input, listing } = tool;
  if (consent.length === 0) return tool;
  const strip = (schema: JsonSchema): JsonSchema => ({
    ...schema,
    properties: without(schema.properties as Record<string, JsonSchema>, consent),
    required: ((schema.required ?? []) as string[]).filter((name) => !consent.includes(name)),
  });
  const schema = z.preprocess((args) => without(args as Record<string, unknown>, consent), input.schema);
  return {
    ...tool,
    input: { ...input, json: strip(input.json), schema },
    listing: { ...listing, inputSchema: strip(listing.inputSchema as JsonSchema) },
  };
}

function without<T>(record: Record<string, T>, names: readonly string[]): Record<string, T> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)));
}
