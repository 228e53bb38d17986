/** Checks the arguments of tools, and explains what is wrong to the model that sent them. */
import * as z from "zod";
import { type JsonSchema, MAX_JOB_NAME } from "../author/job.ts";
import { oneForm } from "../resonate/ids.ts";
import { unheldNumberIn, valueIn } from "../resonate/json.ts";

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
  const { schema, json, isOpen, keepsIntegers } = input;
  const isHeld = unheldNumberIn(args, keepsIntegers) === undefined;
  let parsed = isHeld ? await schema.safeParseAsync(args) : undefined;
  if (!parsed?.success) {
    const { lenient, unheldIn } = await import("./lenient.ts");
    const fitted = lenient(json, args);
    const unheld = unheldIn(json, fitted, keepsIntegers);
    if (unheld.length > 0) return { problems: unheld };
    if (!parsed || fitted !== args) parsed = await schema.safeParseAsync(fitted);
  }
  const names = Object.keys((json.properties ?? {}) as object);
  const hasUnknown = !isOpen && Object.keys(args).some((name) => !names.includes(name));
  if (parsed.success && !hasUnknown) return { args: parsed.data };
  const { explain, unknownIn } = await import("./explain-arguments.ts");
  const unknown = hasUnknown ? unknownIn(names, args) : [];
  if (!parsed.success) return { problems: [...explain(json, parsed.error, args), ...unknown] };
  return { args: parsed.data, note: `Ignored: ${unknown.join(" ")}` };
}
