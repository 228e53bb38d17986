import { type Config, readConfig } from "./config.ts";
import type { DurableFunction } from "./functions/durable.ts";
import { serveHealth } from "./health.ts";
import { createLogger, reasonOf } from "./logger.ts";
import { startTracing } from "./tracing.ts";
import { Worker } from "./worker.ts";

/**
 * Runs a worker as this process: configured by the environment, until SIGTERM or SIGINT, which lets running jobs finish
 * for a while and exits 0; a second one exits 1 at once. A worker that cannot start logs why and exits 1.
 */
export async function runWorker(functions: (config: Config) => DurableFunction[]): Promise<void> {
  let log = createLogger("info");
  try {
    const config = readConfig(process.env);
    log = createLogger(config.LOG_LEVEL);
    const stopTracing = config.OTEL_EXPORTER_OTLP_ENDPOINT ? startTracing() : async () => {};
    const worker = new Worker(config, functions(config), log);
    const { url: health_url } = await serveHealth(worker, { host: config.HEALTH_HOST, port: config.HEALTH_PORT });
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
