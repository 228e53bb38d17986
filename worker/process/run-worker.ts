import { flushCompileCache } from "node:module";
import type { Implementation } from "../../core/author/implement.ts";
import { conflicts } from "../../core/author/job.ts";
import { containStrayErrors } from "../../features/stray-errors/step.ts";
import { reasonOf } from "../execution/instruments.ts";
import { Worker } from "../worker.ts";
import { serveHealth } from "./health.ts";
import { createLogger } from "./logger.ts";
import { watchThread } from "./watchdog.ts";
import { readConfig } from "./worker-config.ts";

/** How long the thread may be blocked: the longer of so many leases and so many milliseconds. By then its jobs run elsewhere. */
const BLOCKED_LEASES = 3;
const BLOCKED = 30_000;

/**
 * The options of a worker. Environment variables configure the rest.
 *
 * @example
 * const options: WorkerOptions = { functions: [waitForSiteRun] };
 */
export interface WorkerOptions {
  /** The durable functions of the jobs that the worker runs. */
  functions: readonly Implementation[];
}

/**
 * Makes this process a worker, which environment variables configure. On SIGTERM or SIGINT it gives running jobs
 * `DRAIN_SECONDS` to finish, releases the rest and exits with 0. After a second signal it exits with 1 at once. A worker that
 * cannot start logs the reason and exits with 1.
 *
 * @example
 * await runWorker({ functions: [waitForSiteRun] });
 */
export async function runWorker({ functions }: WorkerOptions): Promise<void> {
  let log = createLogger("info");
  try {
    const [conflict] = conflicts(functions.map(({ job }) => job));
    if (conflict !== undefined) throw new Error(conflict);
    const config = readConfig(process.env);
    log = createLogger(config.LOG_LEVEL);
    const { OTEL_EXPORTER_OTLP_ENDPOINT: collector, RESONATE_URL, EDGE_URL, PUBLIC_URL } = config;
    const own = [RESONATE_URL, EDGE_URL, PUBLIC_URL];
    const stopTracing = collector
      ? (await import("../../features/trace/tracing.ts")).startTracing(own)
      : async () => {};
    const worker = new Worker(config, functions, process.env, log);
    const { HEALTH_HOST: host, HEALTH_PORT: port, HEALTH_NAMES: names } = config;
    const health_url = await serveHealth(worker, { host, port, names });
    containStrayErrors(log);
    watchThread(Math.max(BLOCKED_LEASES * config.LEASE_SECONDS * 1_000, BLOCKED));
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
    // Node by itself writes its compile cache only when the process exits, and a worker may be killed.
    flushCompileCache();
  } catch (error) {
    log.fatal({ reason: reasonOf(error) }, "cannot start");
    process.exit(1);
  }
}
