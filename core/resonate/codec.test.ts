import { Codec } from "@resonatehq/sdk";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyCharacter } from "../../test/support/any-character.ts";
import { toBase64 } from "./base64.ts";
import { decodeStrictly, decodeValue, encodeValue } from "./codec.ts";
import { parseExact } from "./json.ts";

/** The codec of Resonate's client library, whose format this is: its workers write it, and existing promises have it. */
const library = new Codec();

/** The outcome of `attempt` for comparison: its value, or `throws`. */
function outcome(attempt: () => unknown): unknown {
  try {
    return { value: attempt() };
  } catch {
    return "throws";
  }
}

const error = fc
  .record({ message: fc.string(), name: fc.constantFrom("Error", "TypeError", "ProtocolFailure", "") })
  .map(({ message, name }) => Object.assign(new Error(message), { name }));
const number = fc.oneof(fc.double(), fc.constantFrom(Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY));
const marker = fc.constantFrom(
  ...["__INF__", "__NEG_INF__", "__type", "error", "aggregate_error"].flatMap((mark) => [
    mark,
    `~${mark}`,
    `~~${mark}`,
  ]),
);
const json = fc.jsonValue({ stringUnit: anyCharacter });

/** JSON in which much looks like a mark, or like an escaped one. */
const markedJson = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    marker,
    json,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.oneof(marker, fc.constantFrom("message", "errors", "stack", "name", "code")), tie("value")),
    fc.record(
      { __type: marker, message: tie("value"), errors: tie("value"), name: tie("value") },
      { requiredKeys: [] },
    ),
  ),
})).value;

/** Values that a job might return or throw, and values that it should not. */
const anything = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    json,
    fc.anything({ withDate: true, withMap: true, withBigInt: true, withTypedArray: true, withSparseArray: true }),
    fc.oneof(error, number, fc.string({ unit: anyCharacter })),
    fc.constantFrom(undefined, null, Symbol("s"), () => 1, { toJSON: () => Number.POSITIVE_INFINITY }),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(tie("value"), { maxLength: 3 }).map((errors) => new AggregateError(errors, "several")),
    fc.dictionary(fc.string(), tie("value"), { maxKeys: 4 }),
    tie("value").map((cause) => Object.assign(new Error("caused", { cause }), { own: cause })),
  ),
})).value;

describe("a stored value", () => {
  test("in which nothing looks like a mark equals the client library's bytes, and is refused when the library refuses it", () => {
    fc.assert(
      fc.property(anything, (value) => {
        expect(outcome(() => encodeValue(value))).toEqual(outcome(() => library.encode(value)));
      }),
      { numRuns: 2_000 },
    );
  });

  test("is read as the client library reads it, from any writer", () => {
    fc.assert(
      fc.property(anything, (value) => {
        fc.pre(outcome(() => library.encode(value)) !== "throws");
        const stored = library.encode(value);
        expect(shown(decodeStrictly(stored))).toBe(shown(library.decode(stored)));
      }),
      { numRuns: 2_000 },
    );
  });

  test("is the same when read back, even if much in it looks like a mark", () => {
    fc.assert(
      fc.property(markedJson, marker, (value, text) => {
        expect(JSON.stringify(decodeStrictly(encodeValue(value)))).toBe(JSON.stringify(value));
        expect(decodeStrictly(encodeValue(new Error(text)))).toMatchObject({ message: text });
      }),
      { numRuns: 2_000 },
    );
  });

  test("of any writer can be read, even if it only looks marked", () => {
    fc.assert(
      fc.property(markedJson, (value) => void decodeStrictly({ data: toBase64(JSON.stringify(value)) })),
      { numRuns: 2_000 },
    );
    const odd = { __type: "aggregate_error", message: "m", errors: null };
    expect(decodeStrictly({ data: toBase64(JSON.stringify(odd)) })).toEqual(odd);
  });

  test("that is damaged is refused when the client library refuses it", () => {
    const text = fc.oneof(
      fc.string({ unit: fc.constantFrom(..."AQIe30=+/-_ \n*é") }),
      fc.base64String(),
      fc.string().map(btoaOrNothing),
      fc.tuple(json, fc.nat(), fc.constantFrom("", " ", "=", "*", "-", "\n")).map(([value, at, odd]) => {
        const { data } = encodeValue(value);
        return data.slice(0, at % (data.length + 1)) + odd + data.slice(at % (data.length + 1));
      }),
    );
    fc.assert(
      fc.property(text, (data) => {
        expect(outcome(() => decodeStrictly({ data }))).toEqual(outcome(() => library.decode({ data })));
      }),
      { numRuns: 2_000 },
    );
  });
});

/** A decoded value as text, with what is no JSON. The library gives collected errors a property of their mark besides. */
const shown = (value: unknown): string | undefined =>
  JSON.stringify(value, (_key, part) => {
    if (part instanceof Error) return { is: "error", name: part.name, message: part.message, ...listed(part) };
    return typeof part === "number" && !Number.isFinite(part) ? String(part) : part;
  });

const listed = (error: Error) => (error instanceof AggregateError ? { errors: error.errors } : {});

function btoaOrNothing(text: string): string {
  return outcome(() => btoa(text)) === "throws" ? "" : btoa(text);
}

test("values are unchanged when read back, and errors keep name, message and stack", () => {
  const thrown = Object.assign(new RangeError("out of tea"), { name: "Tea" });
  const value = { list: [1, "ü", null, Number.POSITIVE_INFINITY], nested: { thrown, low: Number.NEGATIVE_INFINITY } };
  const back = decodeValue(encodeValue(value)) as typeof value;
  expect(back).toEqual({ ...value, nested: { ...value.nested, thrown: expect.any(Error) } });
  const { name, message, stack } = back.nested.thrown;
  expect([name, message, stack]).toEqual(["Tea", "out of tea", thrown.stack]);
});

test("undefined is stored as empty data, which is read as undefined", () => {
  expect(encodeValue(undefined)).toEqual({ headers: {}, data: "" });
  for (const value of [{}, { data: "" }, encodeValue(undefined)]) expect(decodeValue(value)).toBeUndefined();
});

test("JSON from Python is read, with spaces between tokens and all characters beyond ASCII escaped", () => {
  const data = btoa('{"place": "Z\\u00fcrich", "days": [1, 2.5], "__type": "error", "message": "no \\ud83c\\udf75"}');
  expect(decodeValue({ data })).toMatchObject({ name: "Error", message: "no 🍵" });
  expect(decodeValue({ data: btoa('{"place": "Z\\u00fcrich"}') })).toEqual({ place: "Zürich" });
});

test("an integer that a number cannot hold keeps its digits, and other numbers are as JSON has them", () => {
  for (const json of [
    "725653563933458432",
    '{"id":-12345678901234567890,"list":[9007199254740993,1.5],"text":"725653563933458432"}',
    `[${"9".repeat(400)}]`,
  ]) {
    const value = decodeStrictly({ data: toBase64(json) });
    expect(JSON.stringify(value)).toBe(json);
    expect(encodeValue(value)).toEqual({ headers: {}, data: toBase64(json) });
  }
  const data = toBase64("[9007199254740991,1000000000000000000,0.1234567890123456789,12345678901234567890.0,1e20]");
  expect(decodeStrictly({ data })).toEqual([9007199254740991, 1e18, 0.12345678901234568, 12345678901234567000, 1e20]);
  // With a mark beside it.
  const beside = { thrown: new Error("no"), id: parseExact("12345678901234567890"), like: "__INF__" };
  const { id, like, thrown } = decodeStrictly(encodeValue(beside)) as typeof beside;
  expect([JSON.stringify(id), like, thrown.message]).toEqual(["12345678901234567890", "__INF__", "no"]);
});

test("damaged data decodes to undefined, and throws when decoded strictly", () => {
  for (const data of ["!", "e30", btoa("{"), btoa("\u00ff"), "eyJ*9"]) {
    if (data !== "e30") expect(() => decodeStrictly({ data })).toThrow();
    expect(decodeValue({ data })).toEqual(data === "e30" ? {} : undefined);
  }
});

test("a value with a cycle, or with a big integer, cannot be stored", () => {
  const circular: Record<string, unknown> = {};
  circular.self = [circular, circular];
  expect(() => encodeValue(circular)).toThrow(TypeError);
  expect(() => encodeValue({ n: 10n })).toThrow(TypeError);
});

test("an error is stored without its other properties, even if those could not be stored", () => {
  const carrying = Object.assign(new Error("odd"), { self: {} as object, big: 10n });
  carrying.self = carrying;
  const { name, message, ...rest } = decodeValue(encodeValue(carrying)) as Error;
  expect([name, message, rest]).toEqual(["Error", "odd", {}]);
});

test("large values are stored and read whole", () => {
  const value = { days: Array.from({ length: 20_000 }, (_, n) => `${n} °C ☔ 🍵`) };
  const stored = encodeValue(value);
  expect(stored).toEqual(library.encode(value));
  expect(decodeValue(stored)).toEqual(value);
});

test("an error keeps its code, which the client library leaves out", () => {
  const stored = encodeValue(Object.assign(new Error("refused"), { code: "nothing_done" }));
  expect(decodeStrictly(stored)).toMatchObject({ message: "refused", code: "nothing_done" });
  expect(library.decode(stored)).toMatchObject({ message: "refused" });
});
