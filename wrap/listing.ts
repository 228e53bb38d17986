/** The entry of a wrapped tool in `tools/list`: the server's own entry, plus what durable calls add. */
import { withoutOurs } from "../core/tools/index.ts";
import { type ListedTool, prefixedName } from "./snapshot.ts";
import type { WrapOptions } from "./wrap-options.ts";

/** The argument that names a call, so that a repeated call is the same job. */
export const JOB_NAME = "job_name";

const JOB_NAME_SCHEMA = {
  type: "string",
  description:
    "Optional: a name for this call, of your choice. A call with the same name finds the job of the first, and never does the work twice.",
};

/** The schema of the tool's answer when the server takes long, or its result is too large for one answer. */
const COLLECTION_SCHEMA = {
  type: "object",
  description: "The call takes long and continues as a job, or its result is large: it is collected.",
  properties: {
    [JOB_NAME]: { type: "string" },
    status: { enum: ["running", "complete"] },
    note: { type: "string", description: "How to collect the result." },
  },
  required: [JOB_NAME, "status", "note"],
};

/** Whether the tool's schema has room for the argument {@link JOB_NAME}. */
export function acceptsJobName({ inputSchema }: ListedTool): boolean {
  const { properties = {}, patternProperties, propertyNames } = inputSchema as Record<string, object>;
  return !Object.hasOwn(properties, JOB_NAME) && patternProperties === undefined && propertyNames === undefined;
}

export function listingOf(
  tool: ListedTool,
  { prefix, apps = false }: Pick<WrapOptions, "prefix" | "apps">,
  hasJobName: boolean,
): Record<string, unknown> {
  // The server's offer of tasks concerns only the worker.
  const { execution: _, name, inputSchema, outputSchema, ...others } = tool;
  const properties = { ...(inputSchema.properties as object | undefined), [JOB_NAME]: JOB_NAME_SCHEMA };
  return {
    name: prefixedName(name, prefix),
    ...withoutOurs(others, { apps }),
    inputSchema: hasJobName ? { ...inputSchema, properties } : inputSchema,
    ...(outputSchema && { outputSchema: withCollectionAnswer(outputSchema) }),
  };
}

/** A schema that fits both the server's answer and the answer that says how to collect the result. */
function withCollectionAnswer(schema: Record<string, unknown>): Record<string, unknown> {
  const { $schema, ...rest } = schema;
  return {
    ...($schema !== undefined && { $schema }),
    type: "object",
    anyOf: [withMovedReferences(rest), COLLECTION_SCHEMA],
  };
}

/** A schema with its references adapted to its new position, as the first of `anyOf`. */
function withMovedReferences(schema: object): object {
  const adapt = (key: string, value: unknown) =>
    key === "$ref" && typeof value === "string" ? value.replace(/^#(?=\/|$)/, "#/anyOf/0") : value;
  return JSON.parse(JSON.stringify(schema, adapt));
}
