import { expect, test } from "vitest";
import * as z from "zod";
import { jsonSchema } from "../author/json-schema.ts";
import { check, jobNames } from "./arguments.ts";
import { describeTool } from "./tool.ts";

const inputOf = (input: Parameters<typeof describeTool>[0]["input"]) =>
  describeTool({ name: "t", title: "T", description: "T.", input }, z.object({})).input;

const place = inputOf(
  z.object({
    latitude: z.number().describe("Degrees north."),
    job_names: z.array(z.string()).optional().describe("Names."),
    confirm: z.boolean().optional(),
  }),
);

test.each([
  [{ latitude: "53.5" }, { latitude: 53.5 }],
  [
    { latitude: 1, confirm: "TRUE" },
    { latitude: 1, confirm: true },
  ],
  [{ latitude: 1, confirm: null }, { latitude: 1 }],
  [
    { latitude: 1, job_names: '["a","b"]' },
    { latitude: 1, job_names: ["a", "b"] },
  ],
  [
    { latitude: 1, job_names: '"a"' },
    { latitude: 1, job_names: ["a"] },
  ],
  [
    { latitude: 1, job_names: "a" },
    { latitude: 1, job_names: ["a"] },
  ],
  [{ latitude: { latitude: 2 } }, { latitude: 2 }],
])("%j is accepted with its intended meaning", async (given, args) => {
  expect(await check(place, given)).toEqual({ args });
});

const open = inputOf(
  z.object({
    note: z.string().nullable().optional(),
    word: z.union([z.string(), z.number()]).optional(),
    pair: z.union([z.object({ pair: z.number() }), z.boolean()]).optional(),
    day: z.iso.date().nullable().optional(),
    kind: z.enum(["a", "b"]).nullable().optional(),
    count: z.int().nullable().optional(),
    plain: z.string().optional(),
  }),
);

test.each([
  [{ note: null }, { note: null }],
  [
    { note: "", word: "" },
    { note: "", word: "" },
  ],
  [{ pair: { pair: 1 } }, { pair: { pair: 1 } }],
  [
    { day: null, kind: null, count: null },
    { day: null, kind: null, count: null },
  ],
  [{ day: "", kind: "", count: "" }, {}],
  [{ plain: null, word: null }, {}],
  [{ plain: "" }, { plain: "" }],
])("of %j, what the schema of a union takes stays, and what it does not take is left out", async (given, args) => {
  expect(await check(open, given)).toEqual({ args });
});

test.each([{ any: { any: 1, b: 2 } }, { any: null }, { any: "" }, { tree: { tree: { tree: {} } } }, { limit: 5 }])(
  "%j, which the schema accepts, stays as it is",
  async (given) => {
    const tree = z.object({
      get tree() {
        return tree.optional();
      },
    });
    const input = inputOf(z.object({ any: z.unknown().optional(), tree: tree.optional(), limit: z.int().optional() }));
    expect(await check(input, given)).toEqual({ args: given });
  },
);

test("a missing argument is named, and so are unknown arguments that were sent instead", async () => {
  expect(await check(place, { lat: 5, job_name: "x", colour: "red" })).toEqual({
    problems: [
      "latitude: is missing. Accepted: Degrees north.",
      '"lat" is not an argument of this tool. Did you mean latitude?',
      '"job_name" is not an argument of this tool. Did you mean job_names?',
      '"colour" is not an argument of this tool.',
    ],
  });
});

test.each([
  ["lng", "longitude"],
  ["tz", "timezone"],
  ["timeZone", "timezone"],
  ["name", "job_names"],
  ["jobs", "job_names"],
  ["id", undefined],
  ["e", undefined],
  ["lattitude", "latitude"],
  ["n", undefined],
  ["colour", undefined],
])("the unknown argument %s leads to this suggestion: %s", async (given, meant) => {
  const field = z.string().optional();
  const input = inputOf(z.object({ latitude: field, longitude: field, job_names: field, timezone: field }));
  const hint = meant === undefined ? "" : ` Did you mean ${meant}?`;
  const note = `Ignored: "${given}" is not an argument of this tool.${hint}`;
  expect(await check(input, { [given]: "x" })).toEqual({ args: {}, note });
});

test("an unknown argument is ignored, and a note says so", async () => {
  expect(await check(place, { latitude: 5, lattitude: 6 })).toEqual({
    args: { latitude: 5 },
    note: 'Ignored: "lattitude" is not an argument of this tool. Did you mean latitude?',
  });
});

test("names of inherited properties count as unknown arguments", async () => {
  expect(await check(place, JSON.parse('{"latitude": 5, "__proto__": 1, "constructor": 2}'))).toMatchObject({
    args: { latitude: 5 },
    note: expect.stringContaining('"__proto__"'),
  });
});

test("plain JSON Schema is checked too, and allows further arguments unless it forbids them", async () => {
  const input = inputOf(
    jsonSchema({ type: "object", properties: { n: { type: "integer", minimum: 1 } }, required: ["n"] }),
  );
  expect(await check(input, { n: "2", more: 1 })).toEqual({ args: { n: 2, more: 1 } });
  expect(await check(input, { n: 0 })).toHaveProperty("problems");
});

test("a list with far more names than a call may have is refused without a look at its entries", async () => {
  let looked = 0;
  const has = () => {
    looked += 1;
    return false;
  };
  const job_names = Array(150_000).fill(new Proxy({}, { has }));
  const problems = [expect.stringContaining("1 to 100 job names")];
  expect(await check(inputOf(z.object({ job_names: jobNames })), { job_names })).toEqual({ problems });
  expect(looked).toBe(0);
});
