import { Codec } from "@resonatehq/sdk";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyCharacter } from "../../test/support/any-character.ts";
import { decodeStrictly, decodeValue, encodeValue } from "./codec.ts";

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
const marker = fc.constantFrom("__INF__", "__NEG_INF__", "__type", "error", "aggregate_error");
const json = fc.jsonValue({ stringUnit: anyCharacter });

/** Values that a job might return or throw, and values that it should not. */
const anything = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    json,
    fc.anything({ withDate: true, withMap: true, withBigInt: true, withTypedArray: true, withSparseArray: true }),
    fc.oneof(error, number, marker, fc.string({ unit: anyCharacter })),
    fc.constantFrom(undefined, null, Symbol("s"), () => 1, { toJSON: () => Number.POSITIVE_INFINITY }),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(tie("value"), { maxLength: 3 }).map((errors) => new AggregateError(errors, "several")),
    fc.dictionary(fc.oneof(fc.string(), marker), tie("value"), { maxKeys: 4 }),
    tie("value").map((cause) => Object.assign(new Error("caused", { cause }), { own: cause })),
  ),
})).value;

describe("a stored value", () => {
  test("equals the client library's bytes, and is refused when the library refuses it", () => {
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
        expect(outcome(() => decodeStrictly(stored))).toEqual(outcome(() => library.decode(stored)));
      }),
      { numRuns: 2_000 },
    );
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
