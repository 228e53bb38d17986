/**
 * One Worker with the edge, the Resonate object and the functions of a container's Worker. workerd has no containers: requests
 * to them go to the test's stand-in at `ENGINE`, and requests that a container would send to `http://resonate/` come in under
 * `/container`.
 */
import edge from "../../../functions/index.ts";
import { ResonateObject as OwnObject } from "../../../functions/objects.ts";
import { resonate } from "../../../infra/container/outbound.ts";
import { type WakeEnv, wake } from "../../../infra/container/wake.ts";

export { CallerObject, Listener, RunnerObject } from "../../../functions/index.ts";

type Env = WakeEnv & { ENGINE: string };

/** The namespace of containers, as the platform gives it to the object. */
const containers = ({ ENGINE }: Env) => ({
  idFromName: (name: string) => ({ name }),
  get: (id: object) => ({ fetch: () => fetch(`${ENGINE}/${(id as { name: string }).name}`) }),
});

/** The Resonate object with a binding to the containers. With `UNBOUND` it has none, and only the cron trigger wakes them. */
export class ResonateObject extends OwnObject {
  constructor(state: object, env: Env & { UNBOUND?: string }) {
    super(state, env.UNBOUND ? env : { ...env, WORKER: containers(env) });
  }
}

export default {
  async fetch(request: Request, env: Env, context: never): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/cron") {
      const WORKER = { getByName: (name: string) => ({ fetch: () => fetch(`${env.ENGINE}/${name}`) }) };
      await wake({ ...env, WORKER });
      return new Response();
    }
    if (!/^\/container(\/|$)/.test(pathname)) return edge.fetch(request, env, context);
    return resonate(new Request(`http://resonate${pathname.slice("/container".length)}`, request), env);
  },
};
