/** What is listed compiles in the validators that clients use, and fits what the server's own schema fits. */
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/ajv";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { AjvJsonSchemaValidator as OlderAjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv";
import fc from "fast-check";
import { expect, test } from "vitest";
import { outputSchemasOf } from "../listing.ts";
import { outputSchemaFault } from "./output-schemas.ts";

type JsonSchema = Record<string, unknown>;

const reference = fc.constantFrom(
  "#",
  "#/$defs/a",
  "#/$defs/b",
  "#/$defs/missing",
  "#/properties/a",
  "#anchor",
  "https://acme.example/root",
  "https://acme.example/root#/$defs/a",
  "https://acme.example/inner",
  "other.json#/x",
);

/** Schemas as servers write them, some of which no validator can use. */
const { schema } = fc.letrec<{ schema: JsonSchema }>((tie) => ({
  schema: fc.oneof(
    { depthSize: "small", maxDepth: 3 },
    fc.constantFrom<JsonSchema>(
      {},
      { type: "string" },
      { type: "integer", minimum: 1 },
      { type: "number", minimum: 1, exclusiveMinimum: true },
      { type: "string", pattern: "(?P<name>x)" },
      { type: "string", pattern: "^a" },
      { type: "string", format: "date" },
      { type: ["string", "null"] },
      { type: "boolean", $anchor: "anchor" },
      { enum: [] },
      { enum: ["a", { $ref: "#/$defs/a" }] },
      { const: { $ref: "#/$defs/missing" } },
      { default: { $ref: 5 } },
      { required: "a" },
      { type: "any" },
    ),
    fc.record({ $ref: reference }),
    fc.record({ type: fc.constant("array"), items: tie("schema") }),
    fc.record({ anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }) }),
    fc.record({
      type: fc.constant("object"),
      properties: fc.dictionary(fc.constantFrom("a", "$ref", "const", "enum", "properties"), tie("schema"), {
        maxKeys: 3,
      }),
    }),
    tie("schema").map((inner) => ({ ...inner, $id: "https://acme.example/inner" })),
  ),
}));

const outputSchema = fc
  .tuple(
    schema,
    fc.record(
      {
        $schema: fc.constantFrom(
          "https://json-schema.org/draft/2020-12/schema",
          "http://json-schema.org/draft-07/schema#",
          "http://json-schema.org/draft-04/schema#",
        ),
        $id: fc.constant("https://acme.example/root"),
        $defs: fc.record({ a: schema, b: schema }, { requiredKeys: ["a"] }),
      },
      { requiredKeys: ["$defs"] },
    ),
  )
  .map(([inner, root]): JsonSchema => ({ ...inner, ...root }));

const value = fc.oneof(
  fc.constantFrom<unknown>(
    1,
    "a",
    "b",
    null,
    true,
    [],
    [1],
    ["a"],
    { $ref: "#/$defs/a" },
    { a: 1 },
    { a: "a", $ref: "a" },
  ),
  fc.jsonValue({ maxDepth: 2 }),
);

/** What the schema says of a value; `fails`, if it refers to itself without end. */
function checkOf(schema: JsonSchema): ((result: unknown) => boolean | "fails") | undefined {
  try {
    const validate = new AjvJsonSchemaValidator().getValidator(schema as never);
    return (result) => {
      try {
        return validate(result).valid;
      } catch {
        return "fails";
      }
    };
  } catch {
    return undefined;
  }
}

test("what is listed compiles in the validators of clients, all in one instance, and accepts what the server's schema accepts", async () => {
  const older = new OlderAjvJsonSchemaValidator();
  const ajv = new AjvJsonSchemaValidator();
  let count = 0;
  await fc.assert(
    fc.asyncProperty(outputSchema, fc.array(value, { maxLength: 5 }), async (own, values) => {
      if ((await outputSchemaFault(own)) !== undefined) return;
      count += 1;
      const { modern, legacy } = outputSchemasOf(own);
      const isObject = legacy === modern;
      for (const validator of [older, ajv, new CfWorkerJsonSchemaValidator()]) {
        for (const listed of [modern, legacy]) validator.getValidator(listed as never);
      }
      // A schema that has an identifier twice does not compile, but what is listed of it may.
      const isOwn = checkOf(own);
      if (!isOwn) return;
      const [isModern, isLegacy] = [checkOf(modern), checkOf(legacy)];
      for (const result of values) {
        expect(isModern?.(result)).toBe(isOwn(result));
        expect(isLegacy?.(isObject ? result : { result })).toBe(isOwn(result));
      }
    }),
    { numRuns: 50 },
  );
  expect(count).toBeGreaterThan(5);
}, 60_000);
