/**
 * Keeps the digits of integers where the SDK's transports parse with `JSON.parse`, which rounds an integer beyond ±2⁵³. Before that,
 * such an integer becomes a text with a secret beginning; afterwards, raw JSON.
 */
import { integerOf, isExactInteger, isRecord } from "../../../core/resonate/index.ts";

/** Begins the text of a marked integer. No server can know it. */
const MARK = `integer-${crypto.randomUUID()}:`;
const MARKED_PATTERN = new RegExp(`"${MARK}(-?\\d+)"`, "g");

/** Whether any integer has been marked in this process. */
let hasMarked = false;

/** The JSON of a message, with its integers marked. */
export function markedJson(message: unknown): string {
  return JSON.stringify(message, (_key, value) => {
    // Such a number is reported, and not taken for null.
    if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY)
      return JSON.rawJSON(`${value > 0 ? "" : "-"}1e999`);
    if (!isExactInteger(value)) return value;
    hasMarked = true;
    return MARK + value.rawJSON;
  });
}

/** The message, changed in place, with its marked integers as raw JSON. */
export function restoreIntegers<Message>(message: Message): Message {
  if (hasMarked) restore(message);
  return message;
}

/** A text that repeats a marked message, with the digits of its integers. */
export const restoredText = (text: string): string => (hasMarked ? text.replaceAll(MARKED_PATTERN, "$1") : text);

function restore(value: unknown): unknown {
  if (typeof value === "string") return value.startsWith(MARK) ? integerOf(value.slice(MARK.length)) : value;
  if (!Array.isArray(value) && !isRecord(value)) return value;
  for (const [key, part] of Object.entries(value)) {
    const now = restore(part);
    // An assignment to a field called `__proto__` would change the prototype.
    if (now !== part) Object.defineProperty(value, key, { value: now });
  }
  return value;
}
