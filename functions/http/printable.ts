/** What a caller sent, in a form in which it can be logged and shown. */

/** In characters. */
const LONGEST = 200;

/** `text` on one line and shortened: what is invisible, or would write over what stands beside it, is shown as an escape. */
export function printable(text: string, longest = LONGEST): string {
  const start = text.slice(0, longest).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
  return text.length > longest ? `${start}… (${text.length} characters)` : start;
}
