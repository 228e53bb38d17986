/** Scheme and host of a URL without credentials, and the rest. */
const WEB_URL_PATTERN = /^(https?:\/\/[^/?#\\@\s]+)(.*)$/is;

/**
 * Whether two texts are the same, or URLs that differ only in the spelling of scheme and host, in a default port or in a final slash.
 */
export function isSameUrl(a: string, b: string): boolean {
  const [one, other] = [a, b].map((text) => {
    const [, origin = "", rest = ""] = WEB_URL_PATTERN.exec(text) ?? [];
    return URL.canParse(origin) ? new URL(origin).origin + rest.replace(/\/$/, "") : text;
  });
  return one === other;
}
