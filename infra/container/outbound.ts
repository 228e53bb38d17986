import { fetchFrom, type ObjectAddress, placed, type ResonateNamespace } from "../../core/store/object-address.ts";

/**
 * Answers what a worker in a container asks of `http://resonate/`: the object does. So it needs no secret, and nothing of it
 * leaves the account.
 */
export function resonate(
  request: Request,
  { RESONATE, ...where }: { RESONATE: ResonateNamespace } & ObjectAddress,
): Response | Promise<Response> {
  // The key that seals task ids is no concern of what runs jobs.
  if (new URL(request.url).pathname === "/key") return new Response(null, { status: 404 });
  return fetchFrom(placed(RESONATE, where))(request);
}
