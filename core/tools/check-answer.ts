/** Checks values from outside that a job waits for: answers to its questions, and bodies of its callbacks. */
import { AnswerEntry, type QuestionEntry } from "../jobs/feed/progress-feed.ts";
import { rounded, unheldNumberIn, unheldReason } from "../resonate/json.ts";

const MAX_ANSWER_CHARACTERS = 10_000;

const EXPECTED_ANSWER = 'an object with action "accept" and content, or action "decline" or "cancel", is required';

/** The answer, or why it does not fit its question, without a full stop. */
export async function checkAnswer(
  { requestedSchema, keepsIntegers }: QuestionEntry,
  response: unknown,
): Promise<{ answer: AnswerEntry } | { reason: string }> {
  const answer = AnswerEntry.safeParse(response);
  if (!answer.success) return { reason: EXPECTED_ANSWER };
  const unheld = unheldNumberIn(response, keepsIntegers);
  if (unheld) return { reason: `it has ${unheldReason(unheld)}` };
  const length = JSON.stringify(answer.data).length;
  if (length > MAX_ANSWER_CHARACTERS)
    return { reason: `it has ${length} characters as JSON; up to ${MAX_ANSWER_CHARACTERS} are accepted` };
  if (answer.data.action !== "accept") return { answer: answer.data };
  const form = await formOf(requestedSchema, keepsIntegers);
  const { content } = answer.data;
  if (form.safeParse(rounded(content)).success) return { answer: answer.data };
  // Some clients write null for a field that was left empty.
  const filled = Object.fromEntries(Object.entries(content).filter(([, value]) => value !== null));
  const { error } = form.safeParse(rounded(filled));
  const reason = error?.issues.map(({ path, message }) => [...path, message].join(": ")).join("; ");
  return reason === undefined
    ? { answer: { action: "accept", content: filled } }
    : { reason: reason.replace(/\.$/, "") };
}

/**
 * The form of an answer. A property whose schema cannot be used, such as one with an invalid pattern, takes any value.
 * `keepsIntegers`: an integer may be one that a number cannot hold.
 */
export async function formOf(
  { properties, required, additionalProperties }: QuestionEntry["requestedSchema"],
  keepsIntegers?: true,
) {
  const { fromJSONSchema } = await import("./json-schema.ts");
  const usable = Object.entries(properties).map(([key, property]) => {
    // Defaults are not filled in: the job gets the answer as it was given.
    const { default: _, ...rest } = Object(property);
    const schema = keepsIntegers && rest.type === "integer" ? { multipleOf: 1, ...rest, type: "number" } : rest;
    try {
      fromJSONSchema(schema);
      return [key, schema];
    } catch {
      return [key, {}];
    }
  });
  return fromJSONSchema({
    type: "object",
    properties: Object.fromEntries(usable),
    required: Array.isArray(required) ? required : [],
    additionalProperties: additionalProperties !== false,
  });
}

/** In what a value does not fit a JSON Schema, each with its path; empty if it fits. */
export async function schemaIssues(schema: object, value: unknown): Promise<string[]> {
  const { fromJSONSchema } = await import("./json-schema.ts");
  const { error } = fromJSONSchema(schema as never).safeParse(value);
  return error?.issues.map(({ path, message }) => [...path, message].join(": ")) ?? [];
}
