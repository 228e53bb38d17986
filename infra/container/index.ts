/** Keeps workers running as Cloudflare Containers: a cron trigger visits each of them, which starts those that are not. */
import { Container } from "@cloudflare/containers";
import { fetchFrom, placed, type ResonateNamespace, type Whereabouts } from "../../core/resonate/place.ts";
import { passedOn } from "./environment.ts";

export { ContainerProxy } from "@cloudflare/containers";

interface Env extends Whereabouts {
  WORKER: DurableObjectNamespace<WorkerContainer>;
  /** The account's own Resonate server, of the edge's Worker. */
  RESONATE: ResonateNamespace;
  INSTANCES: string;
}

export class WorkerContainer extends Container<Env> {
  /** The worker's HEALTH_PORT. */
  override defaultPort = 8081;
  /** Several times the pause between two visits. */
  override sleepAfter = "10m";
  override envVars = passedOn(this.env);
}

// A worker's requests to `http://resonate/` are the object's: they need no secret and never leave the account. Assigned
// here, for a static field would define the property and not call the package's setter.
WorkerContainer.outboundByHost = {
  resonate: (request: Request, env: Env) =>
    // The key that seals task ids is no concern of what runs jobs.
    new URL(request.url).pathname === "/key"
      ? new Response(null, { status: 404 })
      : fetchFrom(placed(env.RESONATE, env))(request),
};

export default {
  async scheduled(_controller, { WORKER, INSTANCES }) {
    await Promise.all(Array.from({ length: Number(INSTANCES) }, (_, i) => visit(WORKER, `worker-${i + 1}`)));
  },
} satisfies ExportedHandler<Env>;

async function visit(workers: Env["WORKER"], worker: string): Promise<void> {
  try {
    const response = await workers.getByName(worker).fetch("http://worker/health");
    console.log(
      JSON.stringify({
        level: "info",
        msg: "worker",
        worker,
        http: response.status,
        ...((await response.json()) as object),
      }),
    );
  } catch (error) {
    console.error(JSON.stringify({ level: "error", msg: "worker does not answer", worker, error: String(error) }));
  }
}
