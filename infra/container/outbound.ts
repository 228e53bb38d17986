import { fetchFrom, type ObjectAddress, type ResonateNamespace, withLocation } from "../../core/resonate/index.ts";

/**
 * Forwards a container's requests to `http://resonate/` to the Resonate object, so that the worker needs no secret and no
 * request leaves the account.
 */
export function resonate(
  request: Request,
  { RESONATE, ...where }: { RESONATE: ResonateNamespace } & ObjectAddress,
): Response | Promise<Response> {
  // Workers must not read the key that seals task ids.
  if (new URL(request.url).pathname === "/key") return new Response(null, { status: 404 });
  return fetchFrom(withLocation(RESONATE, where))(request);
}
