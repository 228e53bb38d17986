import * as z from "zod";
import { type JsonSchema, RAW } from "./job.ts";

/**
 * Plain JSON Schema, for wherever a definition takes a schema. Clients are told it as it is. Apart from the rest, so that
 * an edge whose tools are all in zod does not carry what reads it.
 *
 * @example
 * const day = jsonSchema<{ day: string }>({ type: "object", properties: { day: { type: "string" } }, required: ["day"] });
 */
export function jsonSchema<T = unknown>(schema: JsonSchema): z.ZodType<T> {
  const type = z.fromJSONSchema(schema as never) as unknown as z.ZodType<T>;
  RAW.set(type, schema);
  return type;
}
