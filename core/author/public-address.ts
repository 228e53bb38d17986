/** Which IP addresses are public: when others give an address, only a public one may be fetched from or sent to. */
import { convertIPv4ToBinary, convertIPv6ToBinary } from "hono/utils/ipaddr";

/** Networks that are private, special or without hosts, by IANA's registries. */
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

/** In IPv6, only global unicast addresses are public, except for the special ones. */
const GLOBAL_6 = ["2000::", 3] as const;
const SPECIAL_6 = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const;

/** Whether an address (IPv4 in four decimal numbers, IPv6 without brackets) is public. IPv4 within IPv6 is not. */
export function isPublicAddress(address: string): boolean {
  if (!address.includes(":")) {
    const bits = convertIPv4ToBinary(address);
    return !SPECIAL_4.some(
      ([network, length]) => bits >> BigInt(32 - length) === convertIPv4ToBinary(network) >> BigInt(32 - length),
    );
  }
  const bits = convertIPv6ToBinary(address);
  const isIn = ([network, length]: readonly [string, number]) =>
    bits >> BigInt(128 - length) === convertIPv6ToBinary(network) >> BigInt(128 - length);
  return isIn(GLOBAL_6) && !SPECIAL_6.some(isIn);
}

/** Names that lead to this machine or into its network. */
const SPECIAL_NAME =
  /(^|\.)(localhost|local|internal|intranet|lan|home|corp|private|home\.arpa|test|invalid|example|onion)$/;

/** Whether a host, as `URL` writes it (IPv4 addresses in dotted decimal form), may be public. */
export function isPublicHost(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, "");
  if (host.startsWith("[")) return isPublicAddress(host.slice(1, -1));
  if (/^\d+(\.\d+){3}$/.test(host)) return isPublicAddress(host);
  return host.includes(".") && !SPECIAL_NAME.test(host);
}
