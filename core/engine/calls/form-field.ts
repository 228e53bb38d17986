/** The fields of forms: those of the protocol's `elicitation/create`, of which clients refuse all others. */

export type JsonSchema = Record<string, unknown>;

/** The formats of texts that clients know. */
const FORMATS: readonly unknown[] = ["email", "uri", "date", "date-time"];

/** A field that no form can show; the message says what it is. */
export class NoFormField extends Error {
  override name = "NoFormField";
}

/**
 * A property as a field: a text, a number, yes or no, or choices of texts. One that may be null is left out in its place.
 *
 * @param definitions what its references name
 * @throws {NoFormField}
 */
export function fieldOf(property: JsonSchema, definitions: JsonSchema): JsonSchema {
  const { schema } = withoutNull(resolved(property, definitions), definitions);
  const { const: _const, enum: _enum, anyOf: _anyOf, items, format, ...rest } = schema;
  const { type, title, description, default: preset } = schema;
  const choices = choicesOf(schema, definitions);
  if (choices) return { type: "string", ...choices.form, ...defined({ title, description, default: preset }) };
  switch (schema.enum === undefined && schema.anyOf === undefined ? type : "choices") {
    case "string":
      return { ...rest, ...(FORMATS.includes(format) && { format }) };
    case "boolean":
      return schema;
    case "number":
    case "integer":
      if (schema.const === undefined) return schema;
      throw new NoFormField("a number that is given");
    case "array": {
      const offered = isSchema(items) && choicesOf(resolved(items, definitions), definitions);
      if (offered) return { ...rest, items: offered.items };
      throw new NoFormField("a list of something other than choices");
    }
    case "object":
      throw new NoFormField("an object");
    case "choices":
      throw new NoFormField("a choice of something other than texts");
    default:
      throw new NoFormField("of no type that a form has");
  }
}

/** Whether a property may be null. */
export const isNullable = (property: JsonSchema, definitions: JsonSchema): boolean =>
  withoutNull(resolved(property, definitions), definitions).isNullable;

/** The schema that a reference names, with what stands beside it. */
export function resolved({ $ref, ...rest }: JsonSchema, definitions: JsonSchema): JsonSchema {
  const { id: _, ...beside } = rest;
  const named = typeof $ref === "string" ? definitions[$ref.replace("#/$defs/", "")] : undefined;
  return isSchema(named) ? resolved({ ...named, ...beside }, definitions) : beside;
}

/** A schema without null among its alternatives. */
function withoutNull(schema: JsonSchema, definitions: JsonSchema): { schema: JsonSchema; isNullable: boolean } {
  const { anyOf, type, default: preset, ...rest } = schema;
  const kept = preset !== null && preset !== undefined ? { default: preset } : {};
  if (Array.isArray(type) && type.includes("null")) {
    const types = type.filter((one) => one !== "null");
    return { schema: { ...rest, ...kept, type: types.length === 1 ? types[0] : types }, isNullable: true };
  }
  const alternatives = alternativesIn(anyOf, definitions);
  const others = alternatives.filter((one) => one.type !== "null");
  if (others.length === alternatives.length) return { schema, isNullable: false };
  const [only = {}, ...more] = others;
  return { schema: { ...(more.length === 0 ? only : { anyOf: others }), ...rest, ...kept }, isNullable: true };
}

interface Choice {
  const: string;
  title?: unknown;
}

/** The texts among which a schema lets one choose, as one field and as the items of a list; undefined if it is no such choice. */
function choicesOf(schema: JsonSchema, definitions: JsonSchema): { form: JsonSchema; items: JsonSchema } | undefined {
  const choices = choicesIn(schema, definitions);
  if (!choices) return undefined;
  if (choices.every(({ title }) => typeof title === "string"))
    return { form: { oneOf: choices }, items: { anyOf: choices } };
  const texts = choices.map((choice) => choice.const);
  return { form: { enum: texts }, items: { type: "string", enum: texts } };
}

function choicesIn(
  { anyOf, enum: texts, const: text, title }: JsonSchema,
  definitions: JsonSchema,
): Choice[] | undefined {
  if (typeof text === "string") return [{ const: text, ...(title !== undefined && { title }) }];
  if (Array.isArray(texts))
    return texts.every((one) => typeof one === "string") ? texts.map((one) => ({ const: one })) : undefined;
  const choices = alternativesIn(anyOf, definitions).map((one) => choicesIn(one, definitions));
  return choices.length > 0 && choices.every((each) => each !== undefined) ? choices.flat() : undefined;
}

const alternativesIn = (anyOf: unknown, definitions: JsonSchema): JsonSchema[] =>
  Array.isArray(anyOf) ? anyOf.map((one) => resolved(one as JsonSchema, definitions)) : [];

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const defined = (members: JsonSchema): JsonSchema =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== null));
