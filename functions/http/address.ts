/** Where a request comes from, as far as that can be known. */

/** What the platform tells of a request: on Cloudflare, among other things, the data centre that it came to. */
type PlatformRequest = Request & { cf?: { colo?: unknown } };

/**
 * The address that Cloudflare saw, of IPv6 the network (a host has 2^64 addresses in one); undefined elsewhere: there
 * whoever sends a request writes the header, and could have a new address for each.
 */
export function addressOf(request: Request): string | undefined {
  if (typeof (request as PlatformRequest).cf?.colo !== "string") return undefined;
  const address = request.headers.get("cf-connecting-ip");
  if (address === null) return undefined;
  return address.includes(":") ? networkOf(address) : address;
}

/** The first 64 bits of an IPv6 address. */
function networkOf(address: string): string {
  const [head = "", tail] = address.split("::", 2);
  const groups = head.split(":").filter((group) => group !== "");
  const rest = (tail ?? "").split(":").filter((group) => group !== "");
  const zeros = tail === undefined ? [] : Array(Math.max(0, 8 - groups.length - rest.length)).fill("0");
  return [...groups, ...zeros, ...rest].slice(0, 4).join(":");
}
