import { ElicitRequestFormParamsSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect, test } from "vitest";
import * as z from "zod";
import { formOf, parsedAnswer } from "./form.ts";

const question = (field: z.ZodType) => ({ message: "What?", schema: z.object({ field }) });

/** The form for an object with this field, as clients of the SDK read it. */
function form(field: z.ZodType) {
  const { message, requestedSchema } = formOf("it", question(field));
  const { required = [], properties } = ElicitRequestFormParamsSchema.parse({
    message,
    requestedSchema,
  }).requestedSchema;
  return { isRequired: required.includes("field"), field: properties.field, stored: requestedSchema.properties.field };
}

const letters = z.enum(["a", "b"]);
const choices = { type: "string", enum: ["a", "b"] };

test.each<[what: string, schema: z.ZodType, field: object, isRequired?: boolean]>([
  ["a text", z.string(), { type: "string" }],
  ["nullish", z.string().nullish(), { type: "string" }, false],
  ["nullable", z.int().min(0).max(9).nullable(), { type: "integer", minimum: 0, maximum: 9 }, false],
  ["nullable with null as default", z.string().nullable().default(null), { type: "string" }, false],
  ["with a default", z.string().default("x"), { type: "string", default: "x" }, false],
  ["nullable choices", letters.nullable(), choices, false],
  ["a union of literals", z.union([z.literal("a"), z.literal("b")]), choices],
  ["a nullable union of literals", z.union([z.literal("a"), z.literal("b"), z.null()]), choices, false],
  ["a union of choices", z.union([z.enum(["a"]), z.literal("b")]).describe("d"), { ...choices, description: "d" }],
  ["a literal", z.literal("a"), { type: "string", enum: ["a"] }],
  [
    "literals with titles",
    z.union([z.literal("a").meta({ title: "A" }), z.literal("b").meta({ title: "B" })]),
    {
      type: "string",
      oneOf: [
        { const: "a", title: "A" },
        { const: "b", title: "B" },
      ],
    },
  ],
  ["a list of choices", z.array(letters).min(1), { type: "array", items: choices, minItems: 1 }],
  ["a list of literals", z.array(z.union([z.literal("a"), z.literal("b")])), { type: "array", items: choices }],
  ["with an id", z.string().meta({ id: "Name", title: "Your name" }), { type: "string", title: "Your name" }],
  ["nullable with an id", letters.meta({ id: "Letters" }).nullable(), choices, false],
  ["an email address", z.email(), { type: "string", format: "email" }],
  ["a uuid", z.uuid(), { type: "string" }],
  ["an address of the internet", z.ipv4(), { type: "string" }],
  ["a positive number", z.number().positive(), { type: "number" }],
  ["yes", z.literal(true), { type: "boolean" }],
])("%s is a field that clients accept", (_what, schema, field, isRequired = true) => {
  expect(form(schema)).toMatchObject({ field, isRequired });
  expect(Object.keys(form(schema).field ?? {}).toSorted()).toEqual(Object.keys(field).toSorted());
});

test("a rule that clients do not know stays in the form for the check of the answer", () => {
  expect(form(z.uuid()).stored).toMatchObject({ pattern: expect.stringContaining("0-9a-f") });
  expect(form(z.number().positive()).stored).toMatchObject({ exclusiveMinimum: 0 });
});

test.each<[what: string, schema: z.ZodType, words: string]>([
  ["anything", z.any(), "of no type"],
  ["a list of texts", z.array(z.string()), "a list of something other than choices"],
  ["a tuple", z.tuple([z.string()]), "a list of something other"],
  ["a union of types", z.union([z.string(), z.number()]), "of no type"],
  ["literals of numbers", z.literal([1, 2]), "a choice of something other than texts"],
  ["a literal number", z.literal(1), "a number that is given"],
  ["mixed literals", z.literal(["a", 1]), "a choice of something other"],
  ["a record", z.record(z.string(), z.string()), "an object"],
  ["an object with an id", z.object({ a: z.string() }).meta({ id: "Inner" }), "an object"],
  ["a nullable object", z.object({ a: z.string() }).nullable(), "an object"],
  ["an intersection", z.intersection(z.string(), z.string()), "of no type"],
  ["nothing", z.null(), "of no type"],
])("%s is refused by the name of its field", (_what, schema, words) => {
  expect(() => formOf("it", question(schema))).toThrow(`ctx.ask("it"): the field field is ${words}`);
});

test("an object with an id is a form", () => {
  const schema = z.object({ field: z.string() }).meta({ id: "Whole" });
  expect(formOf("it", { message: "What?", schema }).requestedSchema).toEqual({
    type: "object",
    properties: { field: { type: "string" } },
    required: ["field"],
  });
});

test("a nullable field that is left empty is null", () => {
  const answer = { action: "accept" as const, content: {} };
  for (const schema of [z.string().nullable(), letters.meta({ id: "L" }).nullable()])
    expect(parsedAnswer("it", question(schema), answer)).toEqual({ action: "accept", content: { field: null } });
  expect(parsedAnswer("it", question(z.string().nullish()), answer)).toEqual({ action: "accept", content: {} });
  expect(() => parsedAnswer("it", question(z.string()), answer)).toThrow("does not fit");
});
