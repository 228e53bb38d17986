/** A Worker that passes every request on to the Resonate object. */
export { ResonateObject } from "../../../functions/objects.ts";

interface Env {
  RESONATE: { idFromName(name: string): unknown; get(id: unknown): { fetch(request: Request): Promise<Response> } };
}

export default {
  fetch: (request: Request, { RESONATE }: Env) => RESONATE.get(RESONATE.idFromName("resonate")).fetch(request),
};
