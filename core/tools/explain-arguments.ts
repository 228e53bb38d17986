/** What is wrong with arguments, in words for the model that sent them. Loaded when something is. */
import type * as z from "zod";
import type { JsonSchema } from "../author/job.ts";

/** How many unknown arguments are named, and how many characters of each. */
const MAX_UNKNOWN = 10;
const MAX_NAME = 60;

/** How many characters of a schema's own message are passed on, as it may repeat the arguments. */
const MAX_MESSAGE = 500;

/** A line for each argument that the schema does not have: its name, and the name that was probably meant. */
export function unknownIn(names: readonly string[], args: Record<string, unknown>): string[] {
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
export function explain(json: JsonSchema, error: z.ZodError, args: Record<string, unknown>): string[] {
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
