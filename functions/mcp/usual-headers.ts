import { ACCEPT_PATTERN } from "./message.ts";

/** Headers of the protocol that proxies send twice. */
const REPEATED_HEADERS = ["mcp-protocol-version", "mcp-method", "mcp-session-id"];

/** The types of answers. */
const ACCEPT = "application/json, text/event-stream";

/**
 * The headers in the form that the protocol asks for, if they are in another that says the same: an `Accept` that has both types in
 * a range or in capitals, or is missing, and headers that are sent twice. Headers that say something else are unchanged.
 */
export function usualHeaders(headers: Headers): Headers {
  const usual = new Headers(headers);
  const accept = headers.get("accept") ?? "*/*";
  if (!ACCEPT_PATTERN.test(accept)) {
    const types = accept.split(",").map((type) => type.replace(/;.*/s, "").trim().toLowerCase());
    const isRange = types.some((type) => type === "*/*" || type === "application/*");
    if (isRange || ACCEPT_PATTERN.test(types.join())) usual.set("accept", ACCEPT);
  }
  for (const name of REPEATED_HEADERS) {
    const [first = "", ...others] = headers.get(name)?.split(/, */) ?? [];
    if (others.length > 0 && others.every((other) => other === first)) usual.set(name, first);
  }
  return usual;
}
