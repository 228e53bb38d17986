declare global {
  // The standard library's declarations do not have them yet.
  interface JSON {
    isRawJSON(value: unknown): value is RawJson;
    rawJSON(text: string): RawJson;
  }
}

/** JSON text that `JSON.stringify` writes as it is. */
export interface RawJson {
  readonly rawJSON: string;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isExactInteger(value);
}

/** JSON with sorted keys, so that equal values are equal texts. */
export const canonical = (value: unknown): string => JSON.stringify(value, withSortedKeys) ?? "";

function withSortedKeys(_key: string, part: unknown): unknown {
  if (!isRecord(part)) return part;
  return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** How deep a body may be nested: code that walks it recurses, and would overflow the stack. */
export const MAX_DEPTH = 100;

/** Whether JSON text is nested more than `maxDepth` levels deep, judged by its brackets. */
export function isTooDeep(json: string, maxDepth = MAX_DEPTH): boolean {
  if (json.length < 2 * maxDepth) return false;
  let depth = 0;
  let quoted = false;
  for (let i = 0; i < json.length; i++) {
    switch (json.charCodeAt(i)) {
      case 0x5c: // \, which occurs in strings alone
        i += 1;
        break;
      case 0x22: // "
        quoted = !quoted;
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (!quoted) depth += 1;
        if (depth > maxDepth) return true;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        if (!quoted) depth -= 1;
    }
  }
  return false;
}

/** Matches JSON that may hold an integer that a number cannot hold: it has at least 16 digits. */
const LONG_INTEGER_PATTERN = /(?:^|[[:,\s])-?\d{16,}(?![\d.eE])/;
const INTEGER_PATTERN = /^-?\d+$/;

/** Whether a value is an integer that a number cannot hold. Platforms that cannot parse its digits have none. */
export const isExactInteger: (value: unknown) => value is RawJson =
  JSON.isRawJSON ?? ((_value): _value is RawJson => false);

/** The integer that a text is: a number, or its digits if a number would change them; undefined for any other text. */
export function integerOf(text: string): number | RawJson | undefined {
  if (!INTEGER_PATTERN.test(text)) return undefined;
  const number = Number(text);
  return Number.isSafeInteger(number) || String(number) === text ? number : JSON.rawJSON(text);
}

/** How deep JSON may be nested for integers to keep their digits: parsing recurses then. Nothing accepts deeper values. */
const MAX_EXACT_DEPTH = 2_000;

/** What parsing makes of a part of JSON, from the innermost outwards. */
type Revive = (key: string, value: unknown) => unknown;

/**
 * Parses JSON as `JSON.parse` does, but an integer that a number cannot hold keeps its digits: it becomes raw JSON, which
 * `JSON.stringify` writes as it came.
 *
 * @throws {SyntaxError} for text that is not JSON
 */
export function parseExact(text: string, revive?: Revive): unknown {
  if (!LONG_INTEGER_PATTERN.test(text) || isTooDeep(text, MAX_EXACT_DEPTH)) return JSON.parse(text, revive);
  // The standard library's declarations lack the third parameter, which has the source of a number.
  return JSON.parse(text, ((key: string, value: unknown, { source }: { source?: string } = {}) => {
    if (typeof value === "number" && source !== undefined) return integerOf(source) ?? value;
    return revive ? revive(key, value) : value;
  }) as Revive);
}

/** As {@link parseExact}; undefined for text that is not JSON, or nested more than {@link MAX_DEPTH} levels deep. */
export function exactJsonOf(text: string): unknown {
  try {
    return isTooDeep(text) ? undefined : parseExact(text);
  } catch {
    return undefined;
  }
}

/** A number of JSON that a number of JavaScript cannot hold, with its path: too many digits, or too large (then infinite). */
export interface UnheldNumber {
  path: string;
  value: RawJson | number;
}

/**
 * The first number in a value from JSON that a number of JavaScript cannot hold; undefined if there is none. If `keepsIntegers`,
 * exact integers do not count, as their digits are kept.
 */
export function unheldNumberIn(value: unknown, keepsIntegers = false): UnheldNumber | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : { path: "", value };
  if (typeof value !== "object" || value === null) return undefined;
  if (isExactInteger(value)) return keepsIntegers ? undefined : { path: "", value };
  // The path is made on the way back: most values have no such number, and may have many levels.
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      const found = unheldNumberIn(value[at], keepsIntegers);
      if (found) return inField(`[${at}]`, found);
    }
    return undefined;
  }
  for (const key in value) {
    const found = unheldNumberIn((value as Record<string, unknown>)[key], keepsIntegers);
    if (found) return inField(key, found);
  }
  return undefined;
}

/** A number that was found in the field `name` of a value. */
const inField = (name: string, { path, value }: UnheldNumber): UnheldNumber => ({
  path: path === "" || path.startsWith("[") ? name + path : `${name}.${path}`,
  value,
});

/** How many characters of an exact integer a message repeats. */
const MAX_SHOWN_DIGITS = 40;

/** What is wrong with a number that cannot be held, in words. */
export function unheldReason({ value }: UnheldNumber): string {
  if (typeof value === "number") return "a number beyond ±1.8e308, which cannot be held";
  const { rawJSON: digits } = value;
  const shown = digits.length > MAX_SHOWN_DIGITS ? `${digits.slice(0, MAX_SHOWN_DIGITS)}…` : digits;
  return `${shown}, an integer beyond ±${Number.MAX_SAFE_INTEGER}, whose digits a number cannot hold`;
}

/** The value with its exact integers as numbers, for code that can hold no others. */
export const rounded = <Value>(value: Value): Value =>
  unheldNumberIn(value) ? JSON.parse(JSON.stringify(value)) : value;

/** Parsed JSON; undefined for other text. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The value of a text that is clearly JSON: a list, an object or a quoted string. Undefined for any other text. */
export const valueIn = (text: string): unknown => (/^\s*[[{"]/.test(text) ? exactJsonOf(text) : undefined);
