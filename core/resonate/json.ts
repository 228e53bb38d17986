export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** JSON with sorted keys, so that equal values are equal texts. */
export const canonical = (value: unknown): string => JSON.stringify(value, withSortedKeys) ?? "";

function withSortedKeys(_key: string, part: unknown): unknown {
  if (!isRecord(part)) return part;
  return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** How deep a body may be nested: code that walks it recurses, and would overflow the stack. */
export const MAX_DEPTH = 100;

/** Whether JSON text is nested too deep, judged by its brackets. */
export function isTooDeep(json: string): boolean {
  if (json.length < 2 * MAX_DEPTH) return false;
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
        if (depth > MAX_DEPTH) return true;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        if (!quoted) depth -= 1;
    }
  }
  return false;
}

/** Parsed JSON; undefined for other text. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
