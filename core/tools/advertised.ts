/**
 * Schemas as `tools/list` advertises them. Clients compile, convert and check schemas in their own ways. So keywords that some
 * clients cannot read are left out, and alternative forms of arguments are stated in a way that all clients can read.
 */
import type { JsonSchema } from "../author/job.ts";

type ObjectSchema = JsonSchema & { properties?: Record<string, JsonSchema>; required?: readonly string[] };

/**
 * Removes `$schema` (some clients compile only drafts that they know), `additionalProperties: false` (some clients cannot read
 * it, and later versions may add fields), `maxLength` and keywords that restrict nothing.
 */
export function plain(json: JsonSchema): JsonSchema {
  const { $schema, ...rest } = json;
  return openObjects(rest) as JsonSchema;
}

/**
 * Adds forms that the server accepts as well, for clients that check arguments before they send them: `null` for optional
 * arguments, and text for required numbers.
 */
export function lenientForms(json: JsonSchema): JsonSchema {
  const { properties = {}, required = [] } = json as ObjectSchema;
  const entries = Object.entries(properties).map(([name, property]) => {
    // Clients that repeat an argument in a header accept the annotation on a plain type alone.
    if (Object.hasOwn(property, "x-mcp-header")) return [name, property];
    if (!required.includes(name)) return [name, orNull(property)];
    return [name, property.type === "number" || property.type === "integer" ? orText(property) : property];
  });
  return { ...json, properties: Object.fromEntries(entries) };
}

/** A number, also as text. It has two schemas, because strict validators warn of one schema with two types. */
function orText({ description, ...number }: JsonSchema): JsonSchema {
  return { anyOf: [number, { type: "string" }], ...(description !== undefined && { description }) };
}

/** A value, or null. Beside an `enum` null becomes a further choice. */
function orNull(schema: JsonSchema): JsonSchema {
  if (typeof schema.type !== "string") return schema;
  const { description, ...rest } = schema;
  if (!schema.enum) return { ...schema, type: [schema.type, "null"] } as unknown as JsonSchema;
  return { anyOf: [rest, { type: "null" }], ...(description !== undefined && { description }) };
}

/** The keywords whose values are no schemas. */
const VALUE_KEYWORDS = ["const", "default", "enum", "examples"];

function openObjects(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(openObjects);
  if (typeof schema !== "object" || schema === null) return schema;
  const meaningful = Object.entries(schema).filter(([key, value]) => !isRedundant(key, value));
  const openIn = (key: string, value: unknown) => {
    if (VALUE_KEYWORDS.includes(key)) return value;
    return key === "properties" ? mapped(value as Record<string, unknown>) : openObjects(value);
  };
  return Object.fromEntries(meaningful.map(([key, value]) => [key, openIn(key, value)]));
}

const mapped = (properties: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, openObjects(property)]));

function isRedundant(keyword: string, value: unknown): boolean {
  switch (keyword) {
    case "additionalProperties":
      return value === false || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
    case "propertyNames":
      return (value as JsonSchema).type === "string" && Object.keys(value as object).length === 1;
    case "maxLength":
      // Gemini's schemas do not support it. A text that is too long is refused by the check of arguments.
      return true;
    case "minimum":
    case "maximum":
      // zod adds these bounds to every integer.
      return Math.abs(value as number) === Number.MAX_SAFE_INTEGER;
    default:
      return false;
  }
}
