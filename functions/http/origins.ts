/** Which host names a request may be addressed to, and which pages it may come from. */

/**
 * Refuses requests to foreign host names: a web page can make its own name resolve to this machine (DNS rebinding).
 *
 * @param hosts the names a request may be addressed to; undefined for any
 */
export async function checkHost(request: Request, hosts: readonly string[] | undefined): Promise<Response | undefined> {
  const host = request.headers.get("host");
  if (!hosts || (host !== null && hosts.includes(URL.parse(`http://${host}`)?.hostname ?? ""))) return undefined;
  const { hostHeaderValidationResponse } = await import("../sdk.ts");
  return hostHeaderValidationResponse(request, [...hosts]);
}

/** Refuses requests of pages, except those of the request's own host, of the deployment's names and of listed origins. */
export async function checkOrigin(
  request: Request,
  origins: readonly string[],
  hosts: readonly string[] = [],
): Promise<Response | undefined> {
  const origin = request.headers.get("origin");
  if (!origin || origins.includes("*") || origins.includes(origin)) return undefined;
  if (URL.parse(origin)?.host === new URL(request.url).host && /^https?:/.test(origin)) return undefined;
  const { originValidationResponse } = await import("../sdk.ts");
  return originValidationResponse(request, [...hosts]);
}
