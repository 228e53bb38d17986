/** What the vendors of models do not accept of a tool, by their documentation: to be told by them takes an account. */

interface Schema {
  [keyword: string]: unknown;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
}

export interface ToolSaid {
  name: string;
  description?: string;
  schema: Schema;
}

/** What no vendor takes: of a name, of a field's name, and of the schema's root. */
export function generally({ name, description, schema }: ToolSaid): string[] {
  const fields = [...within(schema)].flatMap(({ properties = {} }) => Object.keys(properties));
  return [
    ...(/^[a-zA-Z_][\w-]{0,63}$/.test(name) ? [] : [`the name ${name}`]),
    ...((description ?? "").length <= 1_024 ? [] : ["a description of more than 1,024 characters"]),
    ...(schema.type === "object" ? [] : ["a root that is no object"]),
    ...["anyOf", "oneOf", "allOf", "enum", "not"].filter((word) => word in schema).map((word) => `${word} in the root`),
    ...fields.filter((field) => !/^[\w.-]{1,64}$/.test(field)).map((field) => `the field ${field}`),
  ];
}

const RANGES = ["minimum", "maximum", "minItems", "maxItems"];

const STRICT = words("type description title enum const properties required additionalProperties items anyOf", RANGES);

/** What OpenAI does not take of a tool whose schema is strict. */
export function strictly({ schema }: ToolSaid): string[] {
  return [...within(schema)].flatMap((part) => {
    const { type, properties = {}, required = [], additionalProperties, anyOf, enum: listed, const: only } = part;
    const isObject = [type].flat().includes("object");
    const isArray = [type].flat().includes("array");
    return [
      ...unknownIn(part, STRICT),
      ...((type ?? anyOf ?? listed ?? only) === undefined ? ["a field without a type"] : []),
      ...(isArray && !part.items ? ["a list of anything"] : []),
      ...(isObject && additionalProperties !== false ? ["an object that is open"] : []),
      // Which is taken, and stays empty.
      ...(isObject && !part.properties ? ["an object without fields"] : []),
      ...(isObject ? Object.keys(properties).filter((field) => !required.includes(field)) : []),
    ];
  });
}

const GEMINI = words(
  "type description title enum format properties required additionalProperties items anyOf oneOf",
  RANGES,
);

/** What Google's documentation does not name of a declaration in JSON Schema. */
export const byGemini = ({ schema }: ToolSaid): string[] =>
  [...within(schema)].flatMap((part) => unknownIn(part, GEMINI));

function words(text: string, more: readonly string[]): ReadonlySet<string> {
  return new Set([...text.split(" "), ...more]);
}

const unknownIn = (part: Schema, known: ReadonlySet<string>): string[] =>
  Object.keys(part).filter((word) => !known.has(word));

/** Every schema in a schema. */
function* within(schema: Schema): Generator<Schema> {
  yield schema;
  const { properties = {}, items, anyOf = [] } = schema;
  for (const part of [...Object.values(properties), ...(items ? [items] : []), ...anyOf]) yield* within(part);
}
