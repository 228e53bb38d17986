/** Forms: the JSON Schema of a question's answer, which the protocol keeps to an object of primitive properties, in zod. */
import * as z from "zod";
import type { QuestionEntry } from "../../core/jobs/feed/progress-feed.ts";

/** What the protocol allows of a property. Whatever else a schema says is not checked here. */
const Property = z.looseObject({
  type: z.string().optional(),
  enum: z.array(z.unknown()).optional(),
  const: z.unknown().optional(),
  oneOf: z.array(z.looseObject({ const: z.unknown() })).optional(),
  anyOf: z.array(z.looseObject({ const: z.unknown() })).optional(),
  items: z.unknown().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  minLength: z.number().optional(),
  maxLength: z.number().optional(),
  minItems: z.number().optional(),
  maxItems: z.number().optional(),
  pattern: z.string().optional(),
  format: z.string().optional(),
});

const FORMATS = new Map<string | undefined, z.ZodType>([
  ["email", z.email()],
  ["uri", z.url()],
  ["date", z.iso.date()],
  ["date-time", z.iso.datetime({ offset: true })],
]);

/** What an answer has to be. */
export function formOf({ properties, required, additionalProperties }: QuestionEntry["requestedSchema"]): z.ZodType {
  const needed = Array.isArray(required) ? required : [];
  const shape = Object.entries(properties).map(([key, property]) => {
    const schema = typeOf(property);
    return [key, needed.includes(key) ? schema : schema.optional()];
  });
  const form = Object.fromEntries(shape);
  return additionalProperties === false ? z.strictObject(form) : z.looseObject(form);
}

function typeOf(property: unknown): z.ZodType {
  const { data: said } = Property.safeParse(property);
  if (!said) return z.unknown();
  const { type, minimum, maximum, minLength, maxLength, minItems, maxItems, pattern, format } = said;
  const choices = said.enum ?? (said.oneOf ?? said.anyOf)?.map((choice) => choice.const);
  if ("const" in said) return z.literal(said.const as string);
  if (choices && choices.length > 0) return z.literal(choices as [string]);
  switch (type) {
    case "boolean":
      return z.boolean();
    case "integer":
    case "number": {
      const number = (type === "integer" ? z.int() : z.number()).min(minimum ?? -Infinity);
      return maximum === undefined ? number : number.max(maximum);
    }
    case "string": {
      const checks: z.ZodType[] = [FORMATS.get(format), pattern === undefined ? undefined : matching(pattern)].filter(
        (check) => check !== undefined,
      );
      // Characters, as JSON Schema counts them.
      const length = (text: string) => [...text].length;
      return z
        .string()
        .refine((text) => length(text) >= (minLength ?? 0), `at least ${minLength} characters`)
        .refine((text) => length(text) <= (maxLength ?? Infinity), `at most ${maxLength} characters`)
        .superRefine((text, context) => {
          for (const { error } of checks.map((check) => check.safeParse(text))) {
            for (const { message } of error?.issues ?? []) context.addIssue(message);
          }
        });
    }
    case "array":
      return z
        .array(typeOf(said.items))
        .min(minItems ?? 0)
        .max(maxItems ?? Infinity);
    default:
      return z.unknown();
  }
}

/** One that is no pattern here refuses nothing. */
function matching(pattern: string): z.ZodType | undefined {
  try {
    return z.string().regex(new RegExp(pattern, "u"));
  } catch {
    return undefined;
  }
}
