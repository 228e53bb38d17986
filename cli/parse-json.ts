/** Parses JSON; undefined if it is invalid or absent. */
// biome-ignore lint/suspicious/noExplicitAny: the caller knows the shape
export function parseJson(text: string | undefined): any {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
