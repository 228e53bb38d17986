export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** JSON with sorted keys, so that equal values are equal texts. */
export const canonical = (value: unknown): string => JSON.stringify(value, sorted) ?? "";

function sorted(_key: string, part: unknown): unknown {
  if (!isRecord(part)) return part;
  return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Parsed JSON; undefined for other text. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
