/** Which addresses may receive web hooks: public ones alone. The network checks at each delivery what a host name resolves to. */
import { isPublicHost } from "../../core/author/index.ts";

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Why an address may not receive web hooks; undefined if it may. `allowsLoopback`: accepts this machine, for development. */
export function callbackProblem(text: string, allowsLoopback: boolean): string | undefined {
  const url = URL.parse(text);
  if (!url || text.length > 2_000) return "it is not a URL, or longer than 2,000 characters";
  if (url.username || url.password) return "it holds a name or a password";
  if (url.hash) return "it holds a fragment";
  if (allowsLoopback && LOOPBACK.test(url.hostname) && /^https?:$/.test(url.protocol)) return undefined;
  if (url.protocol !== "https:") return "it must begin with https://";
  return isPublicHost(url.hostname) ? undefined : "its host is not public";
}

const isLoopbackUrl = (url: string): boolean => LOOPBACK.test(new URL(url).hostname);

interface ReceiverVariables {
  CALLBACKS?: { fetch: typeof fetch } | undefined;
  ALLOW_LOOPBACK_CALLBACKS?: string | undefined;
}

/** The `fetch` for the receiver at an address. With `CALLBACKS` it reaches public addresses alone. */
export function fetchTo(url: string, { CALLBACKS, ALLOW_LOOPBACK_CALLBACKS }: ReceiverVariables): typeof fetch {
  const isOwn = ALLOW_LOOPBACK_CALLBACKS === "1" && isLoopbackUrl(url);
  return CALLBACKS && !isOwn ? (input, init) => CALLBACKS.fetch(input, init) : (input, init) => fetch(input, init);
}
