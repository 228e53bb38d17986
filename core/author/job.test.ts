import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { anyCharacter } from "../../test/support/any-character.ts";
import { escapeId, splitGeneration, withGeneration } from "../resonate/ids.ts";
import { conflicts, defineJob, hashed, MAX_JOB_NAME } from "./job.ts";
import { jsonSchema } from "./json-schema.ts";

/** A job whose id is the text in its arguments. */
const note = defineJob({ kind: "note", args: z.object({ text: z.string() }), id: ({ text }) => text });

describe("a job's name", () => {
  test.each([
    ["tea", "note_tea"],
    ["a b/c?d=é", "note_a b/c?d=é"],
    ["a:b", "note_a%3Ab"],
    ["a~2", "note_a%7E2"],
    ["a\nb", "note_a%0Ab"],
    ["a%3Ab", "note_a%253Ab"],
    ["100 %", "note_100 %"],
    // A model may leave out spaces at the end of a name.
    ["a b  ", "note_a b %20"],
    ["a%20", "note_a%2520"],
    ["a%20b", "note_a%20b"],
    ["a\u00a0", "note_a%A0"],
    ["a\u3000", "note_a%u3000"],
    ["\u2028", "note_%u2028"],
    ["\ud800", "note_%uD800"],
  ])("of %j is %s", async (text, name) => {
    expect(await note.name({ text })).toBe(name);
    expect(note.owns(name)).toBe(true);
  });

  test("differs for different ids, and belongs to its definition, for any text", async () => {
    const text = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 60 });
    const escapes = fc.stringMatching(/^([%~: ]|%3A|%253A|%7e|%20|u2028)+$/);
    await fc.assert(
      fc.asyncProperty(fc.oneof(text, escapes), fc.oneof(text, escapes), async (a, b) => {
        fc.pre(escapeId(a).length <= 400 && escapeId(b).length <= 400);
        const [first, second] = [await note.name({ text: a }), await note.name({ text: b })];
        expect(first === second).toBe(a === b);
        expect(note.owns(first)).toBe(true);
        expect(first.trim()).toBe(first);
        expect(splitGeneration(withGeneration(first, 3))).toEqual({ base: first, generation: 3 });
      }),
    );
  });

  test("that would be too long is refused, with advice to shorten it", async () => {
    const longest = "x".repeat(MAX_JOB_NAME - "note_".length);
    expect(note.owns(await note.name({ text: longest }))).toBe(true);
    await expect(note.name({ text: `${longest}x` })).rejects.toThrow(
      "these arguments make a name of 501 characters, up to 500 are possible: shorten them",
    );
  });

  test.each([undefined, "", { a: 1 }, Number.NaN, null])("is refused for the id %j", async (id) => {
    const bad = defineJob({ kind: "bad", args: z.object({}), id: () => id as never });
    await expect(bad.name({})).rejects.toThrow(/^bad: its id is .*, neither a text nor a number$/);
  });

  test("is refused for a definition without an id", async () => {
    const bad = defineJob({ kind: "bad", args: z.object({}) } as never);
    await expect(bad.name({})).rejects.toThrow("bad: its id is undefined, neither a text nor a number");
  });

  test("may hold a hash that stands for arguments of any size", async () => {
    const [one, same, other] = await Promise.all([hashed({ a: [1] }), hashed({ a: [1] }), hashed({ a: [2] })]);
    expect(one).toMatch(/^[\w-]{22}$/);
    expect([same === one, other === one]).toEqual([true, false]);
  });
});

describe("a definition", () => {
  const define = (kind: string, prefix?: string) =>
    defineJob({ kind, ...(prefix !== undefined && { prefix }), args: z.object({}), id: () => "x" });

  test.each([
    ["a kind with a dash", () => define("a-b"), "kind"],
    ["a prefix that looks like another part of an id", () => define("a", "a:"), "prefix"],
    ["no prefix at all", () => define("a", ""), "prefix"],
    ["the version 0", () => defineJob({ kind: "a", args: z.object({}), id: () => "x", version: 0 }), "version"],
    [
      "a group that no worker may have",
      () => defineJob({ kind: "a", args: z.object({}), id: () => "x", group: "default" }),
      "group",
    ],
    [
      "a time in words",
      () => defineJob({ kind: "a", args: z.object({}), id: () => "x", deadline: "1 h" as never }),
      "a: 1 h is not a number of milliseconds",
    ],
    [
      "a time that is not a number",
      () => defineJob({ kind: "a", args: z.object({}), id: () => "x", freshFor: Number.NaN }),
      "a: NaN is not a number of milliseconds",
    ],
    [
      "a retention that is not a number",
      () => defineJob({ kind: "a", args: z.object({}), id: () => "x", keepFor: Number.NaN }),
      "a: NaN is not a number of milliseconds",
    ],
    [
      "a clean-up in words",
      () => defineJob({ kind: "a", args: z.object({}), id: () => "x", cleanup: { for: "1 h" as never } }),
      "a: 1 h is not a number of milliseconds",
    ],
  ])("with %s is refused", (_what, make, word) => {
    expect(make).toThrow(word);
  });

  test("conflicts only with definitions whose names could be taken for its own", () => {
    expect(conflicts([define("weather"), define("timer"), define("weathering")])).toEqual([]);
    expect(conflicts([define("timer"), define("timer")])).toEqual(["Two jobs are of the kind timer."]);
    expect(conflicts([define("weather"), define("weather_month")])).toEqual([
      expect.stringMatching(/^A name that begins with weather_month_ could be .* Give one of them another prefix\.$/),
    ]);
  });

  test("takes JSON Schema as a schema", () => {
    const job = defineJob<{ text: string }>({
      kind: "plain",
      args: jsonSchema({ type: "object", properties: { text: { type: "string" } }, required: ["text"] }),
      id: ({ text }) => text,
    });
    expect(job.args.safeParse({ text: "a" }).success).toBe(true);
    expect(job.args.safeParse({ text: 1 }).success).toBe(false);
  });

  test("has by default a deadline of a day, and results that stay fresh forever", () => {
    expect(note.deadline({ text: "" }, 1_000)).toBe(1_000 + 86_400_000);
    expect(note.freshFor("anything")).toBeUndefined();
  });
});

describe("a generation", () => {
  test.each([
    ["timer_tea", "timer_tea", 1],
    ["timer_tea~2", "timer_tea", 2],
    ["timer_tea~123456789", "timer_tea", 123_456_789],
    ["timer_tea~1", "timer_tea~1", 1],
    ["timer_tea~0", "timer_tea~0", 1],
    ["timer_tea~02", "timer_tea~02", 1],
    ["timer_tea~-2", "timer_tea~-2", 1],
    ["timer_tea~1234567890", "timer_tea~1234567890", 1],
    ["timer_tea~", "timer_tea~", 1],
    ["~2", "~2", 1],
    ["timer_tea~2~3", "timer_tea~2", 3],
  ])("is split from the name %j", (name, base, generation) => {
    expect(splitGeneration(name)).toEqual({ base, generation });
  });

  test("is found again in every name that was made with one", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[^~]+$/), fc.integer({ min: 1, max: 999_999_999 }), (base, generation) => {
        expect(splitGeneration(withGeneration(base, generation))).toEqual({ base, generation });
      }),
    );
  });
});
