import { describe, expect, test } from "vitest";
import { checkAnswer, formOf } from "./check-answer.ts";

const accepts = async (property: unknown, value: unknown) => {
  const form = await formOf({ type: "object", properties: { it: property }, required: ["it"] });
  return form.safeParse({ it: value }).success;
};

describe("an answer fits", () => {
  test.each([
    [{ type: "string" }, "text"],
    [{ type: "string", minLength: 2, maxLength: 2 }, "🌧🌧"],
    [{ type: "string", format: "date" }, "2026-11-22"],
    [{ type: "string", format: "date-time" }, "2026-11-22T07:00:00+01:00"],
    [{ type: "string", format: "unheard-of" }, "anything"],
    [{ type: "string", pattern: "^v\\d" }, "v2"],
    [{ type: "string", pattern: "(" }, "no pattern"],
    [{ type: "number", minimum: 0, maximum: 1 }, 0.5],
    [{ type: "integer" }, -3],
    [{ type: "boolean" }, false],
    [{ type: "string", enum: ["a", "b"] }, "b"],
    [{ type: "string", oneOf: [{ const: "a", title: "A" }] }, "a"],
    [{ type: "array", items: { type: "string", enum: ["a", "b"] }, minItems: 1 }, ["a", "b"]],
    [{ type: "array", items: { anyOf: [{ const: "a", title: "A" }] } }, []],
    [{ type: "no such type" }, {}],
    [{ $ref: "#/nowhere" }, {}],
  ])("%j with %j", async (property, value) => expect(await accepts(property, value)).toBe(true));
});

describe("an answer does not fit", () => {
  test.each([
    [{ type: "string" }, 1],
    [{ type: "string", minLength: 2 }, "🌧"],
    [{ type: "string", maxLength: 1 }, "ab"],
    [{ type: "string", format: "email" }, "nobody"],
    [{ type: "string", format: "uri" }, "nowhere"],
    [{ type: "string", pattern: "^v\\d" }, "2"],
    [{ type: "number", minimum: 0, maximum: 1 }, 1.5],
    [{ type: "number", minimum: 0 }, -1],
    [{ type: "integer" }, 0.5],
    [{ type: "boolean" }, "true"],
    [{ type: "string", enum: ["a", "b"] }, "c"],
    [{ type: "array", items: { type: "string", enum: ["a"] }, minItems: 1 }, []],
    [{ type: "array", items: { type: "string", enum: ["a"] }, maxItems: 1 }, ["a", "a"]],
    [{ type: "array", items: { type: "string", enum: ["a"] } }, ["b"]],
  ])("%j with %j", async (property, value) => expect(await accepts(property, value)).toBe(false));
});

test("an answer must have the required properties, and no others unless they are allowed", async () => {
  const form = await formOf({
    type: "object",
    properties: { a: { type: "string" } },
    required: ["a"],
    additionalProperties: false,
  });
  expect(form.safeParse({}).success).toBe(false);
  expect(form.safeParse({ a: "1", b: 2 }).success).toBe(false);
  const open = await formOf({ type: "object", properties: { a: { type: "string" } } });
  expect(open.safeParse({ b: 2 }).success).toBe(true);
  const filled = await formOf({ type: "object", properties: { a: { type: "string", default: "b" } }, required: ["a"] });
  expect(filled.safeParse({}).success).toBe(false);
});

test("a wrong answer to a very long form is refused at once", async () => {
  const choice = `${".".repeat(600_000)}x`;
  const requestedSchema = { type: "object" as const, properties: { choice: { type: "string", enum: [choice] } } };
  const checked = await checkAnswer({ message: "?", requestedSchema }, { action: "accept", content: { choice: "." } });
  expect(checked).toMatchObject({ reason: expect.stringContaining("choice") });
});

test("a wrapped server's question gets integers with all digits; others refuse what a number cannot hold", async () => {
  const requestedSchema = { type: "object" as const, properties: { id: { type: "integer", minimum: 0 } } };
  const answer = { action: "accept", content: { id: JSON.rawJSON("725653563933458433") } };
  const checked = await checkAnswer({ message: "?", requestedSchema, keepsIntegers: true }, answer);
  expect(JSON.stringify(checked)).toBe('{"answer":{"action":"accept","content":{"id":725653563933458433}}}');
  expect(await checkAnswer({ message: "?", requestedSchema }, answer)).toMatchObject({
    reason: expect.stringContaining("725653563933458433"),
  });
  const below = { action: "accept", content: { id: JSON.rawJSON("-725653563933458433") } };
  expect(await checkAnswer({ message: "?", requestedSchema, keepsIntegers: true }, below)).toHaveProperty("reason");
});

describe("an agreement without content", () => {
  const checked = (properties: object, required: string[], content: object = {}) =>
    checkAnswer(
      { message: "?", requestedSchema: { type: "object", properties: { ...properties }, required } },
      { action: "accept", ...content },
    );

  test.each([{}, { content: null }])("is one with empty content: %j", async (content) => {
    const empty = { answer: { action: "accept", content: {} } };
    expect(await checked({}, [], content)).toEqual(empty);
    expect(await checked({ why: { type: "string" } }, [], content)).toEqual(empty);
  });

  test("is one with null for a field that was left empty, unless the field takes null", async () => {
    const content = { content: { why: null, when: "now" } };
    const both = { why: { type: "string" }, when: { type: "string" } };
    expect(await checked(both, ["when"], content)).toEqual({ answer: { action: "accept", content: { when: "now" } } });
    expect(await checked(both, ["why"], content)).toEqual({ reason: expect.stringContaining("why") });
    const nullable = { ...both, why: { type: ["string", "null"] } };
    expect(await checked(nullable, ["why"], content)).toEqual({ answer: { action: "accept", ...content } });
  });

  test("is refused by the name of a property that is required", async () => {
    expect(await checked({ why: { type: "string" } }, ["why"])).toEqual({ reason: expect.stringContaining("why") });
  });
});
