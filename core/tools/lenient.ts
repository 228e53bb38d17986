/**
 * Accepts the forms in which clients serialize arguments: a string in place of a list or number, an object in place of a
 * string, `null` in place of a missing argument. Loaded when a schema does not accept the arguments as they are.
 */
import type { JsonSchema } from "../author/job.ts";
import { integerOf, isExactInteger, isRecord, unheldNumberIn, unheldReason, valueIn } from "../resonate/json.ts";

/**
 * Converts each argument to the form that `schema`, the JSON Schema of an object, requires, if the intent is clear. Returns `args` if
 * nothing is to convert.
 */
export function lenient(schema: JsonSchema, args: Record<string, unknown>): Record<string, unknown> {
  return new Forms(schema).fitProperties(schema, args);
}

/** The most arguments that are refused by name, and the longest name, in characters. */
const MAX_PROBLEMS = 20;
const MAX_NAME = 60;

/** A line for each argument that holds a number which its tool would get changed; `keepsIntegers`: see `Input`. */
export function unheldIn(schema: JsonSchema, args: Record<string, unknown>, keepsIntegers?: true): string[] {
  const properties = (schema.properties ?? {}) as Record<string, JsonSchema>;
  const takesOnlyText = (property: JsonSchema = {}) =>
    new Forms(schema).alternatives(property).every(({ type }) => type === "string");
  const problems = Object.entries(args).flatMap(([name, value]) => {
    const found = unheldNumberIn({ [name]: value }, keepsIntegers);
    // JSON that is passed as text keeps its digits.
    const isJsonText = isRecord(value) && Object.hasOwn(properties, name) && takesOnlyText(properties[name]);
    if (!found || isJsonText) return [];
    const advice =
      typeof found.value === "number" ? "" : " Accepted: a smaller one, or a text where the tool takes text.";
    return [`${found.path.slice(0, MAX_NAME)}: got ${unheldReason(found)}.${advice}`];
  });
  return problems.slice(0, MAX_PROBLEMS);
}

/** The forms that a schema requires of the parts of a value. */
class Forms {
  readonly #root: JsonSchema;

  /** `root`: the schema that references begin at. */
  constructor(root: JsonSchema) {
    this.#root = root;
  }

  fitProperties(schema: JsonSchema, value: Record<string, unknown>): Record<string, unknown> {
    const { properties = {}, required = [], additionalProperties } = schema as ObjectSchema;
    const entries = Object.entries(value).flatMap(([name, part]): [string, unknown][] => {
      if (!Object.hasOwn(properties, name))
        return [[name, isRecord(additionalProperties) ? this.#fit(name, additionalProperties, part) : part]];
      const property = properties[name] as JsonSchema;
      const isEmpty = part === null ? !this.#accepts(property, "null") : part === "" && !this.#takesEmptyText(property);
      return isEmpty && !required.includes(name) ? [] : [[name, this.#fit(name, property, part)]];
    });
    const isSame =
      entries.length === Object.keys(value).length && entries.every(([name, part]) => part === value[name]);
    return isSame ? value : Object.fromEntries(entries);
  }

  /** The schemas of which a value must fit one, without references and unions. */
  alternatives(schema: JsonSchema, above: readonly JsonSchema[] = []): JsonSchema[] {
    if (above.includes(schema)) return [];
    const union = [schema.anyOf, schema.oneOf].flatMap((list) => (list ?? []) as JsonSchema[]);
    const target = typeof schema.$ref === "string" ? this.#target(schema.$ref) : undefined;
    const inner = target ? [...union, target] : union;
    return inner.length === 0 ? [schema] : inner.flatMap((one) => this.alternatives(one, [...above, schema]));
  }

  /** The schema that a reference within the document leads to; one that accepts everything, if there is none. */
  #target(reference: string): JsonSchema {
    const path = reference.replace(/^#\/?/, "").split("/").filter(Boolean);
    const found = path.reduce<unknown>((part, key) => Object(part)[key], this.#root);
    return isRecord(found) ? found : {};
  }

  #accepts(schema: JsonSchema, type: Type): boolean {
    return this.alternatives(schema).some((one) => acceptsType(one, type));
  }

  /** Only a value that does not fit as it is is changed. `name`: the property that it is the value of. */
  #fit(name: string, schema: JsonSchema, value: unknown): unknown {
    const accepts = (type: Type) => this.#accepts(schema, type);
    if (typeof value === "string") return this.#fitText(name, schema, value);
    if (typeof value === "number" || isExactInteger(value)) {
      const isText = accepts("string") && !accepts("number") && !accepts("integer");
      return isText ? JSON.stringify(value) : value;
    }
    if (Array.isArray(value)) return this.#fitList(schema, value);
    if (!isRecord(value)) return value;
    // Some models send `{"timer_name": {"timer_name": "tea"}}`.
    if (!accepts("object")) return Object.hasOwn(value, name) ? this.#fit(name, schema, value[name]) : value;
    const meant = this.alternatives(schema).find((one) => acceptsType(one, "object") && isMeant(one, value));
    return meant ? this.fitProperties(meant, value) : value;
  }

  #fitText(name: string, schema: JsonSchema, text: string): unknown {
    const all = this.alternatives(schema);
    if (all.some((one) => acceptsText(one, text))) return text;
    const accepts = (type: Type) => all.some((one) => acceptsType(one, type));
    const trimmed = text.trim();
    if ((accepts("number") || accepts("integer")) && trimmed !== "") {
      const number = integerOf(trimmed) ?? Number(trimmed);
      if (typeof number !== "number" || Number.isFinite(number)) return number;
    }
    if (accepts("boolean") && /^(true|false)$/i.test(text)) return text.toLowerCase() === "true";
    const parsed = valueIn(text);
    const isAccepted = Array.isArray(parsed)
      ? accepts("array")
      : isRecord(parsed) && (accepts("object") || Object.hasOwn(parsed, name));
    if (isAccepted) return this.#fit(name, schema, parsed);
    return all.some((one) => this.#isListOfTexts(one)) ? [parsed ?? text] : text;
  }

  #fitList(schema: JsonSchema, list: readonly unknown[]): unknown {
    const { items } = this.alternatives(schema).find((one) => acceptsType(one, "array")) ?? {};
    const fitted = isRecord(items) ? list.map((item) => this.#fit("", items, item)) : list;
    return fitted.every((item, at) => item === list[at]) ? list : fitted;
  }

  #isListOfTexts(schema: JsonSchema): boolean {
    return acceptsType(schema, "array") && isRecord(schema.items) && this.#accepts(schema.items, "string");
  }

  /** An empty text for a property that is plain text is not left out, so that the schema can refuse it with its reason. */
  #takesEmptyText(schema: JsonSchema): boolean {
    const isLimited = (one: JsonSchema) => LIMITING_KEYWORDS.some((limit) => Object.hasOwn(one, limit));
    const all = this.alternatives(schema);
    return schema.type === "string" || all.some((one) => acceptsType(one, "string") && !isLimited(one));
  }
}

type Type = "string" | "number" | "integer" | "boolean" | "null" | "array" | "object";

interface ObjectSchema {
  properties?: Record<string, JsonSchema>;
  required?: readonly string[];
  additionalProperties?: unknown;
}

/** Whether a schema without references and unions accepts values of a type. One that names no type accepts all. */
function acceptsType({ type, const: only, enum: words, allOf }: JsonSchema, name: Type): boolean {
  if (type !== undefined) return [type].flat().includes(name);
  if (Array.isArray(allOf)) return allOf.every((one) => acceptsType(one, name));
  const values = Array.isArray(words) ? words : only === undefined ? undefined : [only];
  return values?.some((value) => typeOf(value) === name) ?? true;
}

const typeOf = (value: unknown) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);

function acceptsText(schema: JsonSchema, text: string): boolean {
  const { const: only, enum: words } = schema;
  if (Array.isArray(words)) return words.includes(text);
  return only === undefined ? acceptsType(schema, "string") : only === text;
}

/** Whether an object is meant for this schema of a union: it has what is required, and the constants that tell them apart. */
function isMeant(schema: JsonSchema, value: Record<string, unknown>): boolean {
  const { properties = {}, required = [] } = schema as ObjectSchema;
  if (!required.every((name) => Object.hasOwn(value, name))) return false;
  return Object.entries(properties).every(
    ([name, { const: only }]) => only === undefined || !Object.hasOwn(value, name) || value[name] === only,
  );
}

/** The keywords by which a schema of a union may refuse an empty text. */
const LIMITING_KEYWORDS = ["const", "enum", "format", "minLength", "pattern"];
