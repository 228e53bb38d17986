/** Which addresses web hooks may be sent to: public ones alone. What a name leads to, the network decides at each delivery. */
import { convertIPv4ToBinary, convertIPv6ToBinary } from "hono/utils/ipaddr";

/** Networks that are private, special or no host's, by IANA's registries. */
const SPECIAL_4 = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
] as const;

/** Of IPv6, global unicast addresses alone are public, but for these. */
const GLOBAL_6 = ["2000::", 3] as const;
const SPECIAL_6 = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const;

/** Names that lead to this machine or into its network. */
const SPECIAL_NAME =
  /(^|\.)(localhost|local|internal|intranet|lan|home|corp|private|home\.arpa|test|invalid|example|onion)$/;

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Why no web hook is sent to an address; undefined where it may be. `allowsLoopback`: for development. */
export function callbackProblem(text: string, allowsLoopback: boolean): string | undefined {
  const url = URL.parse(text);
  if (!url || text.length > 2_000) return "it is no address, or longer than 2,000 characters";
  if (url.username || url.password) return "it holds a name or a password";
  if (url.hash) return "it holds a fragment";
  if (allowsLoopback && LOOPBACK.test(url.hostname) && /^https?:$/.test(url.protocol)) return undefined;
  if (url.protocol !== "https:") return "it must begin with https://";
  return isPublicHost(url.hostname) ? undefined : "its host is no public one";
}

/** Whether a host, as `URL` has it (IPv4 addresses in their usual form), may be public. */
export function isPublicHost(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, "");
  if (host.startsWith("[")) {
    const bits = convertIPv6ToBinary(host.slice(1, -1));
    const isIn = ([network, length]: readonly [string, number]) =>
      bits >> BigInt(128 - length) === convertIPv6ToBinary(network) >> BigInt(128 - length);
    return isIn(GLOBAL_6) && !SPECIAL_6.some(isIn);
  }
  if (/^\d+(\.\d+){3}$/.test(host)) {
    const bits = convertIPv4ToBinary(host);
    return !SPECIAL_4.some(
      ([network, length]) => bits >> BigInt(32 - length) === convertIPv4ToBinary(network) >> BigInt(32 - length),
    );
  }
  return host.includes(".") && !SPECIAL_NAME.test(host);
}

export const isLoopbackUrl = (url: string): boolean => LOOPBACK.test(new URL(url).hostname);
