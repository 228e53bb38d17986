/** The model vendors' limits for tools, from their documentation, because testing them would need accounts. */

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

/** Violations of limits that all vendors have: names of tools and fields, and the root of the schema. */
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

/** Violations of OpenAI's limits for strict schemas. */
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
      // Such an object is accepted, but stays empty.
      ...(isObject && !part.properties ? ["an object without fields"] : []),
      ...(isObject ? Object.keys(properties).filter((field) => !required.includes(field)) : []),
    ];
  });
}

const GEMINI = words(
  "type description title enum format properties required additionalProperties items anyOf oneOf",
  RANGES,
);

/** JSON Schema keywords that Google's documentation does not list. */
export const byGemini = ({ schema }: ToolSaid): string[] =>
  [...within(schema)].flatMap((part) => unknownIn(part, GEMINI));

function words(text: string, more: readonly string[]): ReadonlySet<string> {
  return new Set([...text.split(" "), ...more]);
}

const unknownIn = (part: Schema, known: ReadonlySet<string>): string[] =>
  Object.keys(part).filter((word) => !known.has(word));

/** All nested schemas of a schema. */
function* within(schema: Schema): Generator<Schema> {
  yield schema;
  const { properties = {}, items, anyOf = [] } = schema;
  for (const part of [...Object.values(properties), ...(items ? [items] : []), ...anyOf]) yield* within(part);
}
