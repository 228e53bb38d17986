import { expect, test } from "vitest";
import { plain } from "./advertised.ts";

test("keywords are left out of a schema, and not out of a default or an example that looks like one", () => {
  const limits = { maxLength: 20, minimum: Number.MIN_SAFE_INTEGER, additionalProperties: false };
  const property = { type: "object", additionalProperties: false, default: limits, examples: [limits] };
  const enumerated = { const: limits, enum: [limits] };
  expect(plain({ type: "object", properties: { maxLength: property, enumerated } })).toEqual({
    type: "object",
    properties: { maxLength: { type: "object", default: limits, examples: [limits] }, enumerated },
  });
});
