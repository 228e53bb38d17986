/** Runs workers as Cloudflare Containers: a cron trigger wakes them when jobs wait, and they sleep when no job executes. */
import { Container } from "@cloudflare/containers";
import { passedOn } from "./environment.ts";
import { resonate } from "./outbound.ts";
import { isIdle, type WakeEnv, wake } from "./wake.ts";

export { ContainerProxy } from "@cloudflare/containers";

interface Env extends Omit<WakeEnv, "WORKER"> {
  WORKER: DurableObjectNamespace<WorkerContainer>;
}

export class WorkerContainer extends Container<Env> {
  /** The worker's HEALTH_PORT. */
  override defaultPort = 8081;
  /** After this time without a request, `onActivityExpired` asks whether a job executes. */
  override sleepAfter = "10m";
  override envVars = passedOn(this.env);

  /** Stops the container unless a job executes. Sleeping and waiting jobs need no worker. */
  override async onActivityExpired(): Promise<void> {
    if (await isIdle(this.containerFetch("http://worker/health"))) await this.stop();
  }
}

// A static field would define the property instead of calling the package's setter.
WorkerContainer.outboundByHost = { resonate };

export default { scheduled: (_controller, env) => wake(env) } satisfies ExportedHandler<Env>;
