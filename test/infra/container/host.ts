/**
 * Edge, Resonate object and what a container's Worker does, in one Worker. There are no containers in workerd: what a test says
 * stands for them, `ENGINE`, is asked instead of them, and what a container would ask of `http://resonate/` comes in under
 * `/container`.
 */
import edge from "../../../functions/index.ts";
import { ResonateObject as OwnObject } from "../../../functions/objects.ts";
import { resonate } from "../../../infra/container/outbound.ts";
import { type WakeEnv, wake } from "../../../infra/container/wake.ts";

export { CallerObject, Listener, RunnerObject } from "../../../functions/index.ts";

type Env = WakeEnv & { ENGINE: string };

/** The containers as the platform gives them to the object. */
const containers = ({ ENGINE }: Env) => ({
  idFromName: (name: string) => ({ name }),
  get: (id: object) => ({ fetch: () => fetch(`${ENGINE}/${(id as { name: string }).name}`) }),
});

/** With the containers bound, where `ENGINE` says that there are any and `UNBOUND` not that the object has only the cron trigger. */
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
      await wake({ ...env, WORKER, INSTANCES: "1" });
      return new Response();
    }
    if (!/^\/container(\/|$)/.test(pathname)) return edge.fetch(request, env, context);
    return resonate(new Request(`http://resonate${pathname.slice("/container".length)}`, request), env);
  },
};
