/** To which names, and from which pages, a request may come. */
import { loadSdk } from "../mcp/load-sdk.ts";

/** An answer that refuses a request, or undefined. */
type Refusal = Promise<Response | undefined>;

/**
 * A page on the web can resolve its own name to this machine: the `Host` it then sends is its own.
 *
 * @param hosts the names a request may be addressed to; undefined for any
 */
export async function checkHost(request: Request, hosts: readonly string[] | undefined): Refusal {
  if (!hosts || isNamed(request, hosts)) return undefined;
  const { hostHeaderValidationResponse } = await loadSdk();
  return hostHeaderValidationResponse(request, [...hosts]);
}

/** Whether a request is addressed to one of the names, as the SDK reads it, which is asked what is wrong with any other. */
function isNamed({ headers }: Request, hosts: readonly string[]): boolean {
  const host = headers.get("host");
  return host !== null && hosts.includes(URL.parse(`http://${host}`)?.hostname ?? "");
}

/**
 * A browser says which page a request comes from. Pages of the server's own host may call it, pages of the names it goes
 * by, and those of the origins that are listed.
 */
export async function checkOrigin(
  request: Request,
  { hosts = [], origins }: { hosts?: readonly string[] | undefined; origins: readonly string[] },
): Refusal {
  const origin = request.headers.get("origin");
  if (!origin || origins.includes("*") || origins.includes(origin)) return undefined;
  if (URL.parse(origin)?.host === new URL(request.url).host && /^https?:/.test(origin)) return undefined;
  const { originValidationResponse } = await loadSdk();
  return originValidationResponse(request, [...hosts]);
}
