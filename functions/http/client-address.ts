/** Cloudflare's additions to a request; `colo` is the data center that received it. */
type PlatformRequest = Request & { cf?: { colo?: unknown } };

/**
 * The client's address as Cloudflare saw it. For IPv6 it is the /64 network, since one host has 2^64 addresses. Undefined
 * elsewhere, where the client writes the header itself and could use a new address for each request.
 */
export function clientAddress(request: Request): string | undefined {
  if (typeof (request as PlatformRequest).cf?.colo !== "string") return undefined;
  const address = request.headers.get("cf-connecting-ip");
  return address?.includes(":") ? networkOf(address) : (address ?? undefined);
}

/** The first 64 bits of an IPv6 address. */
function networkOf(address: string): string {
  const [head = "", tail] = address.split("::", 2);
  const groups = head.split(":").filter((group) => group !== "");
  const rest = (tail ?? "").split(":").filter((group) => group !== "");
  const zeros = tail === undefined ? [] : Array(Math.max(0, 8 - groups.length - rest.length)).fill("0");
  return [...groups, ...zeros, ...rest].slice(0, 4).join(":");
}
