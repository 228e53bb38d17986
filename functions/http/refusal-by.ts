import type { Middleware, Visit } from "../../core/tools/index.ts";

/** The response with which one of these refuses a request, outside of a route; undefined if all pass it on. */
export async function refusalBy([first, ...others]: readonly Middleware[], c: Visit): Promise<Response | undefined> {
  let refusal: Response | undefined;
  const response = await first?.(c, async () => {
    refusal = await refusalBy(others, c);
  });
  return response ?? refusal;
}
