import * as z from "zod";
import { type JsonSchema, RAW_SCHEMAS } from "./job.ts";

/**
 * Makes a schema from plain JSON Schema, which is advertised unchanged. It is in a module of its own, so that an edge whose
 * tools all use zod does not load the converter.
 *
 * @example
 * const day = jsonSchema<{ day: string }>({ type: "object", properties: { day: { type: "string" } }, required: ["day"] });
 */
export function jsonSchema<T = unknown>(schema: JsonSchema): z.ZodType<T> {
  const type = z.fromJSONSchema(schema as never) as unknown as z.ZodType<T>;
  RAW_SCHEMAS.set(type, schema);
  return type;
}
