import type { Implementation } from "../../core/author/implement.ts";
import { conflicts } from "../../core/definitions/job.ts";
import { reasonOf } from "../execution/instruments.ts";
import { Worker } from "../worker.ts";
import { serveHealth } from "./health.ts";
import { createLogger } from "./logger.ts";
import { startTracing } from "./tracing.ts";
import { containUncaught } from "./uncaught.ts";
import { watchThread } from "./watchdog.ts";
import { readConfig } from "./worker-config.ts";

/** For how many leases, and how many milliseconds, its thread may be held: by then whatever it ran is run elsewhere. */
const HELD_LEASES = 3;
const HELD = 30_000;

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
    containUncaught(log);
    watchThread(Math.max(HELD_LEASES * config.LEASE_SECONDS * 1_000, HELD));
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
