/** Keeps workers running as Cloudflare Containers: a cron trigger visits each of them, which starts those that are not. */
import { Container } from "@cloudflare/containers";

/** The worker's environment, as vars and secrets of this Worker. */
const PASSED_ON = [
  "RESONATE_URL",
  "RESONATE_TOKEN",
  "RESONATE_GROUP",
  "RESONATE_NAMESPACE",
  "WEATHER_API_URL",
  "LOG_LEVEL",
  "MAX_TASKS",
  "UPSTREAM_CONCURRENCY",
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "OTEL_EXPORTER_OTLP_HEADERS",
] as const;

type Env = Partial<Record<(typeof PASSED_ON)[number], string>> & {
  WORKER: DurableObjectNamespace<WorkerContainer>;
  INSTANCES: string;
};

export class WorkerContainer extends Container<Env> {
  /** The worker's HEALTH_PORT. */
  override defaultPort = 8081;
  /** Several times the pause between two visits. */
  override sleepAfter = "10m";
  // An empty variable counts as not set.
  override envVars = Object.fromEntries(PASSED_ON.map((name) => [name, this.env[name] ?? ""]));
}

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
