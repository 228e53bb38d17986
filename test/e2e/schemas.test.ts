/** The schemas and descriptions of the listed tools: every client can read them, and the tools behave as they say. */
import { Ajv } from "ajv";
import { describe, expect, test } from "vitest";
import { check } from "../../core/tools/arguments.ts";
import { answerForUser, jobCard } from "../../features/cards/card.ts";
import { withoutConsent } from "../../features/consent/consent.ts";
import { builtIn } from "../../functions/built-in.ts";
import { tools } from "../../tools/index.ts";
import { byGemini, generally } from "../support/vendors.ts";

const all = [
  ...tools,
  ...builtIn([...new Set(tools.flatMap(({ job }) => job ?? []))]),
  // Hosts that show cards hide these two from models. Other hosts show them.
  jobCard(tools, "ui://test/chart.js"),
  answerForUser,
];

interface Schema {
  [keyword: string]: unknown;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  anyOf?: Schema[];
  minimum?: number;
}
const listed = all.map((tool) => ({
  tool,
  ...(tool.listing as { name: string; description: string; inputSchema: Schema; outputSchema: Schema }),
}));

/** Yields every schema within a schema, with its path. */
function* within(schema: unknown, path: string): Generator<[path: string, schema: Schema]> {
  if (typeof schema !== "object" || schema === null) return;
  if (!Array.isArray(schema)) yield [path, schema as Schema];
  for (const [key, value] of Object.entries(schema)) yield* within(value, `${path}.${key}`);
}

describe.each(listed)("$name", ({ tool, name, description, inputSchema, outputSchema }) => {
  const parts = [...within(inputSchema, "input"), ...within(outputSchema, "output")];

  test("has only keywords that every client can read", () => {
    for (const [path, schema] of parts) {
      if (path.endsWith(".properties")) continue;
      expect(schema.$schema, path).toBeUndefined();
      expect(schema.additionalProperties, path).not.toBe(false);
      for (const keyword of ["pattern", "maxLength", "$ref", "$defs", "allOf", "not", "if"]) {
        expect(Object.keys(schema), path).not.toContain(keyword);
      }
    }
  });

  test("compiles with a strict validator without a warning", () => {
    const warnings: string[] = [];
    const logger = {
      log: () => {},
      warn: (text: string) => warnings.push(text),
      error: (text: string) => warnings.push(text),
    };
    new Ajv({ strict: "log", logger, formats: { uri: true } }).compile(inputSchema);
    expect(warnings).toEqual([]);
  });

  test("is accepted by every model vendor, as it is and in strict mode", () => {
    const said = { name, description, schema: inputSchema };
    expect([...generally(said), ...byGemini(said)]).toEqual([]);
    // In strict mode an object may have only its named fields, so an object without named fields could hold nothing.
    const free = [...within(inputSchema, "input")].filter(([path, { type, properties }]) => {
      return !path.endsWith(".properties") && [type].flat().includes("object") && !properties;
    });
    expect(free).toEqual([]);
  });

  test("declares a type or the allowed values of every field", () => {
    for (const [path, { properties = {} }] of parts) {
      for (const [field, property] of Object.entries(properties)) {
        const said = property.type ?? property.anyOf ?? property.enum ?? property.const;
        expect(said, `${path}.${field}`).toBeDefined();
      }
    }
  });

  test("advertises and accepts null for optional arguments", async () => {
    const { properties = {}, required = [] } = inputSchema;
    const optional = Object.keys(properties).filter((field) => !required.includes(field));
    for (const field of optional) {
      const { type, anyOf = [] } = properties[field] as Schema & { anyOf?: Schema[] };
      expect([type, ...anyOf.map((one) => one.type)].flat(), `${name}.${field}`).toContain("null");
    }
    const checked = await check(tool.input, Object.fromEntries(optional.map((field) => [field, null])));
    const problems = "problems" in checked ? checked.problems : [];
    expect(problems.map((line) => line.split(":")[0]).sort()).toEqual([...required].sort());
  });

  test("accepts text for numbers, and advertises it for required ones", async () => {
    const { properties = {} } = inputSchema;
    for (const [field, { type, anyOf }] of Object.entries(properties)) {
      const [{ type: first = type, minimum = undefined } = {}, ...others] = anyOf ?? [];
      if (![first].flat().some((one) => one === "number" || one === "integer")) continue;
      expect(others, field).toEqual(inputSchema.required?.includes(field) ? [{ type: "string" }] : []);
      const checked = await check(tool.input, { [field]: `${minimum ?? 1}` });
      const problems = "problems" in checked ? checked.problems : [];
      expect(problems.some((line) => line.startsWith(`${field}:`))).toBe(false);
    }
  });
});

test("a value that is not accepted is answered with the accepted range, words or form", async () => {
  const problems = async (name: string, args: Record<string, unknown>) => {
    const { tool } = listed.find((one) => one.name === name) ?? expect.fail(name);
    const checked = await check(tool.input, args);
    return "problems" in checked ? checked.problems.join("\n") : "";
  };
  expect(await problems("list_jobs", { status: "done", limit: 0 })).toBe(
    'status: got "done". Accepted: running, complete, failed, cancelled, timed_out.\n' +
      "limit: got 0. Accepted: a whole number from 1 to 100.",
  );
  expect(await problems("weather_range", { latitude: 0, longitude: 0, from: "2013", to: "2013-02" })).toBe(
    'from: got "2013" (it is not a month). Accepted: First month, YYYY-MM, from 1940-01.',
  );
});

test("a deployment may remove the argument by which a model says that the user agreed", async () => {
  const range = listed.find(({ name }) => name === "weather_range")?.tool ?? expect.fail();
  const { input, listing } = withoutConsent(range);
  expect(JSON.stringify(listing)).not.toContain("confirm");
  const checked = await check(input, { latitude: 1, longitude: 2, from: "2012-01", to: "2015-01", confirm: true });
  expect(checked).toEqual({
    args: { latitude: 1, longitude: 2, from: "2012-01", to: "2015-01" },
    note: 'Ignored: "confirm" is not an argument of this tool.',
  });
});
