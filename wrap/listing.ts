/** The entry of a wrapped tool in `tools/list`: the server's own entry, plus what durable calls add. */
import { isRecord } from "../core/resonate/index.ts";
import { areConforming, withoutAnnotations, withoutOurs } from "../core/tools/index.ts";
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

/** The entry for clients of the 2026 revision. */
export function listingOf(
  tool: ListedTool,
  { prefix, apps = false }: Pick<WrapOptions, "prefix" | "apps">,
  hasJobName: boolean,
): Record<string, unknown> {
  // The server's offer of tasks concerns only the worker.
  const { execution: _, name, outputSchema, ...others } = tool;
  // Clients would not offer a tool that says in a wrong way which arguments they repeat in headers.
  const inputSchema = areConforming(tool.inputSchema) ? tool.inputSchema : withoutAnnotations(tool.inputSchema);
  const properties = { ...(inputSchema.properties as object | undefined), [JOB_NAME]: JOB_NAME_SCHEMA };
  return {
    name: prefixedName(name, prefix),
    ...withoutOurs(others, { apps }),
    inputSchema: hasJobName ? { ...inputSchema, properties } : inputSchema,
    ...(outputSchema && { outputSchema: outputSchemasOf(outputSchema).modern }),
  };
}

type JsonSchema = Record<string, unknown>;

/**
 * The output schema in the forms in which it is listed: each fits the server's answer, and the answer that says how to collect the
 * result. Clients of the 2025 revisions know objects only, so for them any other result is the field `result` of an object.
 */
export function outputSchemasOf({ $schema, $id, ...schema }: JsonSchema): { modern: JsonSchema; legacy: JsonSchema } {
  const isObject = schema.type === "object";
  const root = { ...($schema !== undefined && { $schema }) };
  const moved = (to: string) => new MovedSchema($id, to).move(schema) as JsonSchema;
  const modern = { ...root, ...(isObject && { type: "object" }), anyOf: [moved("#/anyOf/0"), COLLECTION_SCHEMA] };
  if (isObject) return { modern, legacy: modern };
  const result = moved("#/anyOf/0/properties/result");
  const wrapped = { type: "object", properties: { result }, required: ["result"] };
  return { modern, legacy: { ...root, type: "object", anyOf: [wrapped, COLLECTION_SCHEMA] } };
}

/** The keywords whose values are data, and those whose values have a schema for each name. */
const VALUE_KEYWORDS = new Set(["const", "default", "enum", "examples"]);
const MAP_KEYWORDS = new Set([
  "$defs",
  "definitions",
  "dependencies",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);

/** Adapts a schema's references to itself to its new position in a document. The SDK does the same, but does not export it. */
class MovedSchema {
  /** The beginning of references to the schema itself, besides `#`. */
  readonly #ownId: string | undefined;
  readonly #position: string;

  /** `id`: the schema's identifier, which it loses: clients keep one schema for each. */
  constructor(id: unknown, position: string) {
    this.#ownId = typeof id === "string" && !id.startsWith("#") ? id.replace(/#$/, "") : undefined;
    this.#position = position;
  }

  move(schema: unknown, isMap = false): unknown {
    if (Array.isArray(schema)) return schema.map((item) => this.move(item));
    if (!isRecord(schema)) return schema;
    // The references of a schema with an identifier are relative to that schema.
    if (!isMap && typeof schema.$id === "string" && !schema.$id.startsWith("#")) return schema;
    const entries = Object.entries(schema).map(([key, value]) => [
      key,
      isMap ? this.move(value) : this.#keyword(key, value),
    ]);
    return Object.fromEntries(entries);
  }

  #keyword(key: string, value: unknown): unknown {
    if (/^\$(dynamicR|r)ef$/.test(key) && typeof value === "string") return this.#reference(value);
    return VALUE_KEYWORDS.has(key) ? value : this.move(value, MAP_KEYWORDS.has(key));
  }

  #reference(reference: string): string {
    const own = this.#ownId;
    const isById = own !== undefined && (reference === own || reference.startsWith(`${own}#`));
    const local = isById ? reference.slice(own.length) || "#" : reference;
    return local.replace(/^#(?=\/|$)/, this.#position);
  }
}
