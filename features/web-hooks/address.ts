/** Which addresses may receive web hooks: public ones alone. The network checks at each delivery what a host name resolves to. */
import { isPublicAddress } from "../../core/author/public-address.ts";

/** Names that lead to this machine or into its network. */
const SPECIAL_NAME =
  /(^|\.)(localhost|local|internal|intranet|lan|home|corp|private|home\.arpa|test|invalid|example|onion)$/;

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Why an address may not receive web hooks; undefined where it may. `allowsLoopback`: accepts this machine, for development. */
export function callbackProblem(text: string, allowsLoopback: boolean): string | undefined {
  const url = URL.parse(text);
  if (!url || text.length > 2_000) return "it is not a URL, or longer than 2,000 characters";
  if (url.username || url.password) return "it holds a name or a password";
  if (url.hash) return "it holds a fragment";
  if (allowsLoopback && LOOPBACK.test(url.hostname) && /^https?:$/.test(url.protocol)) return undefined;
  if (url.protocol !== "https:") return "it must begin with https://";
  return isPublicHost(url.hostname) ? undefined : "its host is not public";
}

/** Whether a host, as `URL` writes it (IPv4 addresses in dotted decimal form), may be public. */
export function isPublicHost(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, "");
  if (host.startsWith("[")) return isPublicAddress(host.slice(1, -1));
  if (/^\d+(\.\d+){3}$/.test(host)) return isPublicAddress(host);
  return host.includes(".") && !SPECIAL_NAME.test(host);
}

export const isLoopbackUrl = (url: string): boolean => LOOPBACK.test(new URL(url).hostname);
