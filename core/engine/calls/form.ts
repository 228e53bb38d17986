/** The form of a question, and the answers that fit it. */
import type { ZodType } from "zod";
import { toJSONSchema } from "zod/v4/core";
import {
  type Answer,
  NondeterminismError,
  NonRetryableError,
  type Question,
  type TypedQuestion,
} from "../../author/context.ts";
import { parsedAtOnce, problemsOf } from "../../author/implement.ts";
import { fieldOf, isNullable, type JsonSchema, NoFormField, resolved } from "./form-field.ts";

/** The question as it is stored. @throws {NondeterminismError} if it cannot be shown as a form */
export function formOf(name: string, question: Question | TypedQuestion<unknown>): Question {
  const form = question && "schema" in question ? withForm(name, question) : question;
  const { type, properties } = form?.requestedSchema ?? {};
  if (typeof form?.message === "string" && type === "object" && typeof properties === "object") return form;
  throw new NondeterminismError(`ctx.ask("${name}") takes { message: "…", schema: z.object({ … }) }`);
}

function withForm(name: string, { schema, ...question }: TypedQuestion<unknown>): Question {
  const { type, properties, required, definitions } = jsonOf(name, schema);
  const fields = Object.entries(properties).map(([field, property]) => {
    try {
      return [field, fieldOf(property, definitions)] as const;
    } catch (error) {
      if (!(error instanceof NoFormField)) throw error;
      const words = "Forms have texts, numbers, yes or no, and choices of texts";
      throw new NondeterminismError(`ctx.ask("${name}"): the field ${field} is ${error.message}. ${words}`);
    }
  });
  const needed = required.filter((field) => !isNullable(properties[field] ?? {}, definitions));
  const requestedSchema = {
    type,
    properties: Object.fromEntries(fields),
    ...(needed.length > 0 && { required: needed }),
  };
  return { ...question, requestedSchema };
}

/** The JSON Schema of what is asked for, and the definitions that it refers to. */
function jsonOf(name: string, schema: TypedQuestion<unknown>["schema"]) {
  try {
    const { $defs: definitions = {}, ...json } = toJSONSchema(schema, { io: "input" }) as JsonSchema & {
      $defs?: JsonSchema;
    };
    const { type, properties = {}, required = [] } = resolved(json, definitions);
    return {
      type: type as "object",
      properties: properties as Record<string, JsonSchema>,
      required: required as string[],
      definitions,
    };
  } catch (error) {
    throw new NondeterminismError(`ctx.ask("${name}"): its schema cannot be a form: ${(error as Error).message}`);
  }
}

/** The answer, with its content parsed by the schema. @throws {NonRetryableError} if the content does not fit */
export function parsedAnswer<T>(name: string, { schema }: TypedQuestion<T>, answer: Answer): Answer<T> {
  if (answer.action !== "accept") return answer;
  const { properties, required, definitions } = jsonOf(name, schema);
  // In a form such a field can be left empty.
  const empty = required.filter((field) => isNullable(properties[field] ?? {}, definitions));
  const content = { ...Object.fromEntries(empty.map((field) => [field, null])), ...answer.content };
  return { action: "accept", content: parsed(name, schema, content, `the answer to "${name}"`) };
}

/** The JSON Schema of what a callback takes; undefined if JSON Schema cannot express it. */
export function schemaOf(schema: ZodType): object | undefined {
  try {
    return toJSONSchema(schema, { io: "input" });
  } catch {
    return undefined;
  }
}

/** The value sent to a callback, parsed by the schema. @throws {NonRetryableError} if it does not fit */
export const parsedValue = <T>(name: string, schema: ZodType<T>, value: unknown): T =>
  parsed(name, schema, value, `what was sent to the callback "${name}"`);

function parsed<T>(name: string, schema: ZodType<T>, content: unknown, what: string): T {
  const words = `"${name}": its schema checks something asynchronously. Do that in a step`;
  const { success, data, error } = parsedAtOnce(schema, content, () => new NonRetryableError(words));
  if (success) return data;
  throw new NonRetryableError(`${what} does not fit: ${problemsOf(error)}`);
}
