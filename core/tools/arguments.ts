/** Checks the arguments of tools, and explains what is wrong to the model that sent them. */
import * as z from "zod";
import { type JsonSchema, MAX_JOB_NAME } from "../author/job.ts";
import { oneForm } from "../resonate/ids.ts";
import { isRecord, unheldNumberIn, unheldReason } from "../resonate/json.ts";
import { lenient, takesOnlyText, valueIn } from "./lenient.ts";

/** The most names in one call: each costs the edge one request to the Resonate server. */
export const MAX_NAMES = 100;

/** The most names, including repetitions, that are read. A longer list is refused as a whole. */
const MAX_EXAMINED_PARTS = 10_000;

/** The most characters of all names together, as an answer repeats them twice and has a limit. */
const MAX_ALL_NAMES = 16_000;

/** The longest text that is parsed as a list of names. It leaves room for escaped characters and repeated names. */
const MAX_ENCODED_CHARACTERS = 10 * MAX_ALL_NAMES;

/** Job names: a list, a JSON-encoded list, one bare name, or `{job_name}` objects. Repetitions are dropped. */
export const jobNames = z
  .preprocess(
    namesOf,
    z
      .array(z.string().refine((name) => name !== "", "a name is empty"))
      // The limits are not in the JSON Schema but in the description, which every client can read.
      .refine(({ length }) => length > 0 && length <= MAX_NAMES, "too few, or too many")
      .refine(
        (names) => names.reduce((sum, name) => sum + name.length, 0) <= MAX_ALL_NAMES,
        `they come to more than ${MAX_ALL_NAMES} characters; pass fewer at a time`,
      ),
  )
  .describe(`1 to ${MAX_NAMES} job names, as returned.`);

/** Text that may be a job's name. Its length is limited as answers repeat it; a name with its generation is not twice as long. */
export const nameText = z.string().refine(({ length }) => length <= 2 * MAX_JOB_NAME, "no name is so long");

/** One job name: bare, JSON-encoded, or in an object. */
export const jobName = z.preprocess((value) => [namesOf(value)].flat()[0], nameText);

/**
 * JSON as text; other values are serialized. Some models do not produce an object with arbitrary properties, and strict schemas
 * cannot express it.
 */
export const jsonText = z.preprocess(
  (value) => (typeof value === "string" ? value : JSON.stringify(value)),
  z.string(),
);

/**
 * The intended names, without repetitions. Reading ends at the first entry that is not a name, or when there are too many: then
 * the few entries that are returned make the schema refuse the list, so that a refusal is cheap.
 */
function namesOf(value: unknown): unknown {
  // A text that is not clearly JSON is a bare name.
  const parsed = typeof value === "string" && value.length <= MAX_ENCODED_CHARACTERS ? valueIn(value) : undefined;
  const plain = unwrap(parsed ?? value, ["job_names"]);
  const list = Array.isArray(plain) ? plain : [plain];
  if (list.length > MAX_EXAMINED_PARTS) return [];
  const names = new Set<string>();
  for (const item of list) {
    const name = unwrap(item, ["job_name", "promise_id"]);
    if (typeof name !== "string") return [name];
    names.add(oneForm(name.trim()));
    if (names.size > MAX_NAMES) break;
  }
  return [...names];
}

function unwrap(value: unknown, keys: string[]): unknown {
  if (typeof value !== "object" || value === null) return value;
  for (const key of keys) if (key in value) return (value as Record<string, unknown>)[key];
  return value;
}

/** The input of a tool: the schema that checks, and its JSON Schema as advertised. */
export interface Input {
  schema: z.ZodType<unknown>;
  json: JsonSchema;
  /** Whether it accepts arguments that it does not name. */
  isOpen: boolean;
  /** Whether integers keep digits that a number cannot hold. Otherwise such integers are refused. */
  keepsIntegers?: true;
}

/** `note` names the arguments that the tool does not know. */
export type CheckedArguments = { args: unknown; note?: string } | { problems: string[] };

/**
 * The arguments in the tool's form, or a line for each wrong argument: its name, its value, and the accepted values. Arguments that
 * the schema refuses are read as what a client probably meant.
 */
export async function check(input: Input, args: Record<string, unknown>): Promise<CheckedArguments> {
  const { schema, json, isOpen } = input;
  const hasUnheld = unheldNumberIn(args, input.keepsIntegers) !== undefined;
  const strict = hasUnheld ? undefined : await schema.safeParseAsync(args);
  const fitted = strict?.success ? args : lenient(json, args);
  const unheld = unheldIn(input, fitted);
  if (unheld.length > 0) return { problems: unheld };
  const parsed = strict?.success ? strict : await schema.safeParseAsync(fitted);
  const unknown = isOpen ? [] : unknownIn(json, args);
  if (!parsed.success) return { problems: [...explain(json, parsed.error, args), ...unknown] };
  return { args: parsed.data, ...(unknown.length > 0 && { note: `Ignored: ${unknown.join(" ")}` }) };
}

/** A line for each argument that holds a number which its tool would get changed. */
function unheldIn({ json, keepsIntegers }: Input, args: Record<string, unknown>): string[] {
  const properties = (json.properties ?? {}) as Record<string, JsonSchema>;
  const problems = Object.entries(args).flatMap(([name, value]) => {
    const found = unheldNumberIn(value, keepsIntegers, name);
    // JSON that is passed as text keeps its digits.
    const isJsonText =
      isRecord(value) && Object.hasOwn(properties, name) && takesOnlyText(json, properties[name] ?? {});
    if (!found || isJsonText) return [];
    const advice =
      typeof found.value === "number" ? "" : " Accepted: a smaller one, or a text where the tool takes text.";
    return [`${found.path.slice(0, MAX_NAME)}: got ${unheldReason(found)}.${advice}`];
  });
  return problems.slice(0, MAX_PROBLEMS);
}

/** How many unknown arguments are named, and how many characters of each. */
const MAX_UNKNOWN = 10;
const MAX_NAME = 60;

/** How many characters of a schema's own message are passed on, as it may repeat the arguments. */
const MAX_MESSAGE = 500;

/** A line for each argument that the schema does not have: its name, and the name that was probably meant. */
function unknownIn({ properties = {} }: JsonSchema, args: Record<string, unknown>): string[] {
  const names = Object.keys(properties as object);
  return Object.keys(args)
    .filter((name) => !names.includes(name))
    .slice(0, MAX_UNKNOWN)
    .map((name) => {
      const meant = closest(name.slice(0, MAX_NAME).toLowerCase(), names);
      const hint = meant === undefined ? "" : ` Did you mean ${meant}?`;
      return `${preview(name.slice(0, MAX_NAME))} is not an argument of this tool.${hint}`;
    });
}

function closest(name: string, names: readonly string[]): string | undefined {
  const start = names.find((each) => name.startsWith(each) || shortens(name, each));
  if (start !== undefined) return start;
  const nearest = names
    .map((each) => ({ each, distance: distance(name, each) }))
    .sort((a, b) => a.distance - b.distance)[0];
  return nearest && nearest.distance <= Math.min(3, name.length / 2) ? nearest.each : undefined;
}

function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (let j = 0; j < to.length; j++)
      next.push(Math.min((row[j] ?? 0) + Number(letter !== to[j]), (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    row = next;
  }
  return row[to.length] ?? 0;
}

/** Whether a name is a part of another, or abbreviates it by leaving out letters, as `lng` and `tz` do. */
function shortens(short: string, name: string): boolean {
  let found = 0;
  for (const letter of name) if (letter === short[found]) found += 1;
  return found === short.length && found > 1 && (name[0] === short[0] || name.includes(short));
}

const MAX_PROBLEMS = 20;

/** A line for each wrong argument, with the last problem that was found, so that each value is printed once. */
function explain(json: JsonSchema, error: z.ZodError, args: Record<string, unknown>): string[] {
  const properties = (json.properties ?? {}) as Record<string, JsonSchema>;
  const wrong = new Map<string, z.core.$ZodIssue>();
  for (const issue of error.issues) {
    const field = String(issue.path[0] ?? "");
    if (wrong.has(field) || wrong.size < MAX_PROBLEMS) wrong.set(field, issue);
  }
  return [...wrong].map(([field, issue]) => {
    const accepted = Object.hasOwn(properties, field) ? acceptedBy(properties[field] as JsonSchema) : undefined;
    const message = issue.message.slice(0, MAX_MESSAGE);
    const reason = issue.code === "custom" ? ` (${message})` : "";
    const got = Object.hasOwn(args, field) && args[field] !== undefined ? `got ${preview(args[field])}` : "is missing";
    return `${field.slice(0, MAX_NAME)}: ${got}${reason}. Accepted: ${accepted ?? message}`;
  });
}

/** The values that a schema accepts, in words: the range of a number, the choices, and its description. */
function acceptedBy({ type, minimum, maximum, enum: words, anyOf, description }: JsonSchema): string | undefined {
  const types = [type].flat();
  const number = types.includes("integer") ? "a whole number" : types.includes("number") ? "a number" : undefined;
  const range = [minimum === undefined ? [] : `from ${minimum}`, maximum === undefined ? [] : `to ${maximum}`].flat();
  const allowedWords = words ?? (anyOf as JsonSchema[] | undefined)?.find((one) => one.enum)?.enum;
  const parts = [
    ...(number && range[0] ? [`${[number, ...range].join(" ")}.`] : []),
    ...(Array.isArray(allowedWords) ? [`${allowedWords.join(", ")}.`] : []),
    ...(typeof description === "string" ? [description] : []),
  ];
  return parts.join(" ") || undefined;
}

/** A value as the model sent it, shortened, with unprintable characters escaped. */
function preview(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  if (text.length <= 120) return text;
  return `${text.slice(0, 120)}… (${Array.isArray(value) ? `${value.length} entries` : `${text.length} characters`})`;
}
