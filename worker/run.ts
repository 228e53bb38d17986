import type { Implementation } from "../core/durable/implement.ts";
import { conflicts } from "../core/jobs/job.ts";
import { readConfig } from "./config.ts";
import { serveHealth } from "./health.ts";
import { reasonOf } from "./instruments.ts";
import { createLogger } from "./logger.ts";
import { startTracing } from "./tracing.ts";
import { Worker } from "./worker.ts";

/**
 * What a worker executes. All else it is told by the environment.
 *
 * @example
 * const options: WorkerOptions = { tools: [waitForSiteRun] };
 */
export interface WorkerOptions {
  /** The code of the jobs that it runs. */
  tools: readonly Implementation[];
}

/**
 * Runs a worker as this process: configured by the environment, until SIGTERM or SIGINT, which lets running jobs finish
 * for a while and exits 0; a second one exits 1 at once. A worker that cannot start logs why and exits 1.
 *
 * @example
 * await runWorker({ tools: [waitForSiteRun] });
 */
export async function runWorker({ tools }: WorkerOptions): Promise<void> {
  let log = createLogger("info");
  try {
    const [conflict] = conflicts(tools.map(({ job }) => job));
    if (conflict !== undefined) throw new Error(conflict);
    const config = readConfig(process.env);
    log = createLogger(config.LOG_LEVEL);
    const stopTracing = config.OTEL_EXPORTER_OTLP_ENDPOINT ? startTracing() : async () => {};
    const worker = new Worker(config, tools, process.env, log);
    const { HEALTH_HOST: host, HEALTH_PORT: port, HEALTH_NAMES: names } = config;
    const { url: health_url } = await serveHealth(worker, { host, port, names });
    // What a job leaves behind unawaited must not end the process that runs the others.
    process.on("unhandledRejection", (reason) => log.error({ reason: reasonOf(reason) }, "unhandled rejection"));
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      process.on(signal, async () => {
        if (worker.stopping) process.exit(1);
        log.info({ signal, running: worker.running }, "stopping");
        await worker.stop();
        await stopTracing();
        process.exit(0);
      });
    }
    await worker.start();
    log.info({ health_url }, "ready");
  } catch (error) {
    log.fatal({ reason: reasonOf(error) }, "cannot start");
    process.exit(1);
  }
}
