/**
 * Accepts the forms in which clients serialize arguments: a string in place of a list or number, an object in place of a
 * string, `null` in place of a missing argument.
 */
import type { JsonSchema } from "../author/job.ts";
import { jsonOf } from "../resonate/json.ts";

interface ObjectSchema {
  properties?: Record<string, JsonSchema>;
  required?: readonly string[];
}

/** Converts each argument to the form that `schema`, the JSON Schema of an object, requires, if the intent is clear. */
export function lenient(schema: JsonSchema, args: Record<string, unknown>): Record<string, unknown> {
  const { properties = {}, required = [] } = schema as ObjectSchema;
  const entries = Object.entries(args).flatMap(([name, value]): [string, unknown][] => {
    if (!Object.hasOwn(properties, name)) return [[name, value]];
    const property = properties[name] as JsonSchema;
    const isEmpty = value === null ? !acceptsType(property, "null") : value === "" && !takesEmptyText(property);
    return isEmpty && !required.includes(name) ? [] : [[name, fitToSchema(name, property, value)]];
  });
  return Object.fromEntries(entries);
}

function fitToSchema(name: string, schema: JsonSchema, argument: unknown): unknown {
  const value = unwrapValue(name, schema, argument);
  if (typeof value === "string") {
    if (accepts(schema, "string")) return value;
    if ((accepts(schema, "number") || accepts(schema, "integer")) && value.trim() !== "") {
      const number = Number(value);
      return Number.isNaN(number) ? value : number;
    }
    if (accepts(schema, "boolean") && /^(true|false)$/i.test(value)) return value.toLowerCase() === "true";
    if (accepts(schema, "array") || accepts(schema, "object")) {
      const parsed = valueIn(value);
      if (typeof parsed === "object" && parsed !== null) return parsed;
      return accepts(schema, "array") && isListOfStrings(schema) ? [parsed ?? value] : value;
    }
  }
  if (typeof value === "number" && schema.type === "string") return String(value);
  return value;
}

/** Some models send `{"timer_name": {"timer_name": "tea"}}`. */
function unwrapValue(name: string, schema: JsonSchema, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value) || acceptsType(schema, "object"))
    return value;
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : value;
}

const accepts = ({ type }: JsonSchema, typeName: string): boolean =>
  type === typeName || (Array.isArray(type) && (type as unknown[]).includes(typeName));

/** The schema, and those of the union that it is. zod writes `nullable` as a union, too. */
const alternatives = (schema: JsonSchema): JsonSchema[] => [
  schema,
  ...[schema.anyOf, schema.oneOf].flatMap((union) => ((union ?? []) as JsonSchema[]).flatMap(alternatives)),
];

const acceptsType = (schema: JsonSchema, typeName: string): boolean =>
  alternatives(schema).some((one) => accepts(one, typeName));

/** The keywords by which a schema of a union may refuse an empty text. */
const LIMITING_KEYWORDS = ["const", "enum", "format", "minLength", "pattern"];

/** An empty text for a property that is plain text is not left out, so that the schema can refuse it with its reason. */
const takesEmptyText = (schema: JsonSchema): boolean =>
  schema.type === "string" ||
  alternatives(schema).some(
    (one) => accepts(one, "string") && !LIMITING_KEYWORDS.some((limit) => Object.hasOwn(one, limit)),
  );

const isListOfStrings = ({ items }: JsonSchema): boolean => (items as JsonSchema | undefined)?.type === "string";

/** The value of a text that is clearly JSON: a list, an object or a quoted string. Undefined for any other text. */
export const valueIn = (text: string): unknown => (/^\s*[[{"]/.test(text) ? jsonOf(text) : undefined);
