/**
 * The headers `Mcp-Param-*`, in which clients of the 2026-07-28 revision repeat the arguments whose schemas have the keyword
 * `x-mcp-header` (SEP-2243). The SDK has the same code, but exports none of it: its client adds the headers only to calls whose
 * results it reads itself, and its server checks them only for tools that are registered with it.
 */
import { isRecord } from "../resonate/json.ts";

const KEYWORD = "x-mcp-header";

/** The code of the error of a request whose headers differ from its body. */
export const HEADER_MISMATCH = -32020;

/** An argument that is repeated in a header. */
interface Declaration {
  /** The names of the properties that lead to it. */
  path: readonly string[];
  /** The name of its header. */
  header: string;
  type: "string" | "integer" | "boolean" | "number";
}

const TYPES: readonly unknown[] = ["string", "integer", "boolean", "number"];
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** The arguments that a tool's schema has in headers: those that only names of properties lead to. */
export function declarationsIn(schema: unknown, path: readonly string[] = []): Declaration[] {
  if (!isRecord(schema)) return [];
  const { [KEYWORD]: name, type, properties } = schema;
  const isValid = path.length > 0 && typeof name === "string" && TOKEN.test(name) && TYPES.includes(type);
  const own = isValid ? [{ path, header: `mcp-param-${name.toLowerCase()}`, type: type as Declaration["type"] }] : [];
  const inner = isRecord(properties) ? Object.entries(properties) : [];
  return [...own, ...inner.flatMap(([key, property]) => declarationsIn(property, [...path, key]))];
}

/**
 * Whether conforming clients accept the schema's annotations: they leave out a tool that has the keyword in another place, on a
 * value that is no text, integer or boolean, or twice with one name.
 */
export function areConforming(schema: Record<string, unknown>): boolean {
  const declarations = declarationsIn(schema);
  const names = new Set(declarations.filter(({ type }) => type !== "number").map(({ header }) => header));
  return names.size === JSON.stringify(schema).split(`"${KEYWORD}":`).length - 1;
}

/** The schema without the keyword. */
export const withoutAnnotations = (schema: Record<string, unknown>): Record<string, unknown> =>
  JSON.parse(JSON.stringify(schema, (key, value) => (key === KEYWORD && !isRecord(value) ? undefined : value)));

/** The headers of a call with these arguments. */
export function paramHeaders(schema: unknown, args: unknown): Record<string, string> {
  const headers = declarationsIn(schema).flatMap(({ path, header }) => {
    const text = textOf(valueAt(args, path));
    return text === undefined ? [] : [[header, encoded(text)] as const];
  });
  return Object.fromEntries(headers);
}

/** In what the headers of a call differ from its arguments; undefined if they do not. */
export function headerMismatch(schema: unknown, args: unknown, headers: Headers): string | undefined {
  for (const { path, header } of declarationsIn(schema)) {
    const value = valueAt(args, path);
    const text = textOf(value);
    if (text === undefined) continue;
    const sent = headers.get(header);
    if (sent === null) return `the header ${header} is missing, and the argument ${path.join(".")} is there`;
    const got = decoded(sent);
    const isEqual = typeof value === "number" && DECIMAL.test(got ?? "") ? Number(got) === value : got === text;
    if (!isEqual) return `the header ${header} is not what the argument ${path.join(".")} is`;
  }
  return undefined;
}

const DECIMAL = /^-?\d+(\.\d+)?$/;

const valueAt = (args: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((value, key) => (isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined), args);

/** The value as a text; undefined for one that no header repeats. */
function textOf(value: unknown): string | undefined {
  if (typeof value === "string" || typeof value === "boolean") return String(value);
  if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : String(value);
}

const BASE64 = /^=\?base64\?(.*)\?=$/s;

/** The text as a header's value: encoded if a header cannot hold it, or if it looks encoded. */
function encoded(text: string): string {
  if (/^[\t\x20-\x7e]+$/.test(text) && text === text.trim() && !BASE64.test(text)) return text;
  return `=?base64?${btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""))}?=`;
}

/** The text of a header's value; undefined if its encoding is wrong. */
function decoded(value: string): string | undefined {
  const [, base64] = BASE64.exec(value) ?? [];
  if (base64 === undefined) return value;
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    if (btoa(atob(base64)) !== base64) return undefined;
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
