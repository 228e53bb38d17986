import { expect, test } from "vitest";
import * as z from "zod";
import { jsonSchema } from "../author/json-schema.ts";
import { parseExact } from "../resonate/json.ts";
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
  [{ latitude: '{"latitude": 2}' }, { latitude: 2 }],
  [
    { latitude: "1", job_names: { job_names: ["a", "b"] } },
    { latitude: 1, job_names: ["a", "b"] },
  ],
  [
    { latitude: "1", job_names: '{"job_names": ["a", "b"]}' },
    { latitude: 1, job_names: ["a", "b"] },
  ],
  [
    { latitude: 1, job_names: ["a", 5] },
    { latitude: 1, job_names: ["a", "5"] },
  ],
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

const nested = z.object({ n: z.int().optional(), list: z.array(z.number()).optional(), any: z.any().optional() });
const shape = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("circle"), r: z.number() }),
  z.object({ kind: z.literal("square"), side: z.object({ cm: z.int() }) }),
]);
const chain = z.object({
  size: z.int(),
  get next() {
    return chain.optional();
  },
});
const forms = inputOf(
  z.object({
    must: z.int(),
    count: z.int().nullish(),
    numbers: z.array(z.number()).optional(),
    nested: nested.nullish(),
    shape: shape.optional(),
    chain: chain.optional(),
    either: z.union([z.string(), z.int()]).optional(),
    level: z.union([z.literal("auto"), z.int()]).optional(),
    rates: z.record(z.string(), z.number()).optional(),
    any: z.any().optional(),
    open: z.looseObject({ a: z.int() }).optional(),
  }),
);

// `must` is always a text, so that no value of the others fits at once.
test.each([
  [{ count: "5" }, { count: 5 }],
  [{ numbers: ["1", "2"] }, { numbers: [1, 2] }],
  [{ numbers: '["1", 2]' }, { numbers: [1, 2] }],
  [{ nested: '{"n": "5"}' }, { nested: { n: 5 } }],
  [{ nested: { n: null, list: ["1"], any: null } }, { nested: { list: [1], any: null } }],
  [{ shape: '{"kind": "circle", "r": "2"}' }, { shape: { kind: "circle", r: 2 } }],
  [{ shape: { kind: "square", side: '{"cm":"3"}' } }, { shape: { kind: "square", side: { cm: 3 } } }],
  [
    { chain: { size: "1", next: { size: "2", next: '{"size":3}' } } },
    { chain: { size: 1, next: { size: 2, next: { size: 3 } } } },
  ],
  [{ either: "5" }, { either: "5" }],
  [{ level: "5" }, { level: 5 }],
  [{ level: "auto" }, { level: "auto" }],
  [{ rates: { a: "1.5" } }, { rates: { a: 1.5 } }],
  [{ any: { any: 1, b: 2 } }, { any: { any: 1, b: 2 } }],
  [{ any: null }, { any: null }],
  [{ any: "5" }, { any: "5" }],
  [{ chain: { size: 1, next: { size: 2 } } }, { chain: { size: 1, next: { size: 2 } } }],
  [{ open: { a: "1", open: 2 } }, { open: { a: 1, open: 2 } }],
])("beside a text for a number, %j is read as %j", async (given, meant) => {
  expect(await check(forms, { must: "1", ...given })).toEqual({ args: { must: 1, ...meant } });
});

const parsed = (json: string) => parseExact(json) as Record<string, unknown>;

test.each([
  '{"n": 725653563933458432}',
  '{"n": "12345678901234567890"}',
  '{"any": [{"deep": 725653563933458432}]}',
  '{"open": {"b": 725653563933458432}}',
])("%s has an integer that a number cannot hold, and is refused in words", async (json) => {
  const input = inputOf(z.object({ n: z.number(), any: z.any(), open: z.looseObject({}) }).partial());
  const { problems } = (await check(input, parsed(json))) as { problems: string[] };
  expect(problems).toEqual([
    expect.stringMatching(/^[\w.[\]]+: got \d+, an integer beyond ±9007199254740991, whose digits/),
  ]);
});

test("an integer for a text keeps its digits, and a number beyond all numbers is refused", async () => {
  const input = inputOf(z.object({ id: z.string(), any: z.any() }));
  expect(await check(input, parsed('{"id": 725653563933458432, "any": 1e20}'))).toEqual({
    args: { id: "725653563933458432", any: 1e20 },
  });
  const refusal = { problems: ["any: got a number beyond ±1.8e308, which cannot be held."] };
  expect(await check(input, parsed('{"id": "a", "any": 1e400}'))).toEqual(refusal);
  const kept = { ...input, keepsIntegers: true as const };
  expect(await check(kept, parsed('{"id": "a", "any": [12345678901234567890, 1e400]}'))).toHaveProperty("problems");
  expect(await check(kept, parsed('{"id": "a", "any": [12345678901234567890]}'))).toHaveProperty("args");
});

test.each(["Infinity", "1e400", "NaN"])(
  "the text %s, which is no number that can be held, is refused as it came",
  async (text) => {
    const problems = [`latitude: got "${text}". Accepted: Degrees north.`];
    expect(await check(place, { latitude: text })).toEqual({ problems });
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

test("a name is one name, in whichever form its characters come", async () => {
  const input = inputOf(z.object({ job_names: jobNames }));
  expect(await check(input, { job_names: ["e\u0301", "é"] })).toEqual({ args: { job_names: ["é"] } });
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
