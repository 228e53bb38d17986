/**
 * What tools accept as arguments. Clients serialise differently: a string where a list or a number is expected, an
 * object where a string is. All of those work; the schema that is advertised is the plain one.
 *
 * Every field's description says what is accepted: the model reads it in the schema, and again in the error when it
 * sent something else.
 */
import * as z from "zod";

/** The most names one call takes: each costs the edge one request to the Resonate server. */
export const MAX_NAMES = 1_000;

/** A number; a numeric string is one. */
export const lenientNumber = <T extends z.ZodType<number>>(schema: T) =>
  z.preprocess((value) => (typeof value === "string" && value.trim() !== "" ? Number(value) : value), schema);

/** An optional argument; `null` and an empty string mean absent. */
export const lenientOptional = <T extends z.ZodType>(schema: T) =>
  z.preprocess((value) => (value === null || value === "" ? undefined : value), schema.optional());

/** An optional boolean; `"true"` and `"false"` are booleans. */
export const lenientBoolean = () =>
  z.preprocess((value) => {
    if (value === null || value === "") return undefined;
    return typeof value === "string" && /^(true|false)$/i.test(value) ? value.toLowerCase() === "true" : value;
  }, z.boolean().optional());

/** A string; an object with that one `key` is unwrapped, and a number is its digits. */
export const lenientString = <T extends z.ZodType<string>>(key: string, schema: T) =>
  z.preprocess((value) => {
    const plain = unwrap(value, [key]);
    return typeof plain === "number" ? String(plain) : plain;
  }, schema);

/** Job names: a list, a JSON-encoded list, one bare name, or `{job_name}` objects. Repeated names are one. */
export const jobNames = z
  .preprocess(
    namesOf,
    z
      .array(z.string().min(1))
      .overwrite((names) => [...new Set(names)])
      .min(1)
      .max(MAX_NAMES),
  )
  .describe(`A list of 1 to ${MAX_NAMES} job names, each as returned by the tool that started the job.`);

function namesOf(value: unknown): unknown {
  const plain = unwrap(parseJson(value), ["job_names"]);
  const list = Array.isArray(plain) ? plain : [plain];
  return list.map((item) => {
    const name = unwrap(item, ["job_name", "promise_id"]);
    return typeof name === "string" ? name.trim() : name;
  });
}

function unwrap(value: unknown, keys: string[]): unknown {
  if (typeof value !== "object" || value === null) return value;
  for (const key of keys) if (key in value) return (value as Record<string, unknown>)[key];
  return value;
}

/** A string that is plainly JSON (a list, an object, a quoted string) is what it encodes; any other is a bare name. */
function parseJson(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{"]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** One line for each argument that is wrong: its name, the value, and what would be accepted. */
export function explain(schema: z.ZodObject, error: z.ZodError, args: Record<string, unknown>): string[] {
  const lines = new Map<string, string>();
  for (const issue of error.issues) {
    const field = String(issue.path[0] ?? "");
    const accepted = (schema.shape[field] as z.ZodType | undefined)?.description ?? issue.message;
    const reason = issue.code === "custom" ? ` (${issue.message})` : "";
    const got = args[field] === undefined ? "is missing" : `got ${preview(args[field])}`;
    lines.set(field, `${field}: ${got}${reason}. Accepted: ${accepted}`);
  }
  return [...lines.values()];
}

/** A value as the model sent it, shortened; unprintable characters are shown as escapes. */
function preview(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  if (text.length <= 120) return text;
  return `${text.slice(0, 120)}… (${Array.isArray(value) ? `${value.length} entries` : `${text.length} characters`})`;
}
