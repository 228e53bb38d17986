/** Which addresses web hooks may be sent to: public ones alone. What a name leads to, the network decides at each delivery. */
import { isPublicAddress } from "../../../core/definitions/public-address.ts";

/** Names that lead to this machine or into its network. */
const SPECIAL_NAME =
  /(^|\.)(localhost|local|internal|intranet|lan|home|corp|private|home\.arpa|test|invalid|example|onion)$/;

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Why no web hook is sent to an address; undefined where it may be. `allowsLoopback`: for development. */
export function callbackProblem(text: string, allowsLoopback: boolean): string | undefined {
  const url = URL.parse(text);
  if (!url || text.length > 2_000) return "it is not a URL, or longer than 2,000 characters";
  if (url.username || url.password) return "it holds a name or a password";
  if (url.hash) return "it holds a fragment";
  if (allowsLoopback && LOOPBACK.test(url.hostname) && /^https?:$/.test(url.protocol)) return undefined;
  if (url.protocol !== "https:") return "it must begin with https://";
  return isPublicHost(url.hostname) ? undefined : "its host is not public";
}

/** Whether a host, as `URL` has it (IPv4 addresses in their usual form), may be public. */
export function isPublicHost(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, "");
  if (host.startsWith("[")) return isPublicAddress(host.slice(1, -1));
  if (/^\d+(\.\d+){3}$/.test(host)) return isPublicAddress(host);
  return host.includes(".") && !SPECIAL_NAME.test(host);
}

export const isLoopbackUrl = (url: string): boolean => LOOPBACK.test(new URL(url).hostname);
