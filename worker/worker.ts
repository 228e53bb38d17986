/** The worker process, put together by its configuration. */
import { flushCompileCache } from "node:module";
import { conflicts, type Implementation } from "../core/author/index.ts";
import type { WorkerFeature } from "../core/feature.ts";
import { JOB_FORMAT_VERSION, reasonOf, type WorkerState } from "../core/jobs/index.ts";
import { endpointOf, ResonateClient } from "../core/resonate/index.ts";
import { capturedState } from "../features/captured-state/step.ts";
import { FileStorage } from "../features/files/kept-files.ts";
import { locationOf } from "../features/files/location.ts";
import { sweepFiles } from "../features/files/sweep-repeatedly.ts";
import { countRequest, metrics } from "../features/metrics/task.ts";
import { containStrayErrors, strayErrors } from "../features/stray-errors/step.ts";
import { spans } from "../features/trace/span-task.ts";
import { surroundingSpan } from "../features/trace/spans.ts";
import { attemptSpans } from "../features/trace/step.ts";
import { traceIds } from "../features/trace/task.ts";
import { EdgeReports } from "../features/worker-reports/edge-reports.ts";
import { workerReports } from "../features/worker-reports/task.ts";
import { compose } from "./composition.ts";
import { readConfig, type WorkerConfig } from "./config.ts";
import { inBatches, post } from "./connection/exchange.ts";
import { publicFetch } from "./connection/public-fetch.ts";
import { TaskIntake } from "./intake/task-intake.ts";
import { collectBuffers } from "./process/collect-garbage.ts";
import { serveHealth } from "./process/health.ts";
import { createLogger, type Logger } from "./process/logger.ts";
import { watchThread } from "./process/watchdog.ts";
import { Worker } from "./process/worker.ts";

/** How long a request to the Resonate server may take at most. */
const MAX_REQUEST_TIMEOUT_MS = 10_000;

/** How long the thread may be blocked: the longer of so many leases and so many milliseconds. By then its jobs run elsewhere. */
const MAX_BLOCKED_LEASES = 3;
const MIN_BLOCKED_MS = 30_000;

/** In how many executions of each version of a function its steps are checked for changes of its variables. */
const CHECKED_EXECUTIONS = { always: Number.POSITIVE_INFINITY, first: 20, never: 0 };

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
    const worker = createWorker(config, functions, process.env, log);
    const { HEALTH_HOST: host, HEALTH_PORT: port, HEALTH_NAMES: names } = config;
    const health_url = await serveHealth(worker, { host, port, names });
    containStrayErrors(log);
    watchThread(Math.max(MAX_BLOCKED_LEASES * config.LEASE_SECONDS * 1_000, MIN_BLOCKED_MS));
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      process.on(signal, async () => {
        if (worker.isStopping) process.exit(1);
        log.info({ signal, running: worker.running }, "stopping");
        await worker.stop();
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

/**
 * @throws {Error} naming the variables that an implementation needs and the environment lacks; or if no implementation belongs to
 *   this worker's group
 */
export function createWorker(
  config: WorkerConfig,
  implementations: readonly Implementation[],
  env: NodeJS.ProcessEnv,
  log: Logger,
): Worker {
  const leaseTimeMs = Math.ceil(config.LEASE_SECONDS * 1000);
  const group = groupOf(config, implementations, log);
  const endpoint = endpointOf(config);
  const { namespace } = endpoint;
  const client = new ResonateClient({
    ...endpoint,
    exchange: inBatches(post),
    timeout: Math.min(MAX_REQUEST_TIMEOUT_MS, leaseTimeMs),
    onRequest: countRequest,
  });
  const location = locationOf(env, collectBuffers);
  const files = location && new FileStorage(location);
  const reports = reportsOf(config, { client, namespace, log }, () => ({
    worker: parts.pid,
    group,
    form: JOB_FORMAT_VERSION,
    kinds: parts.kinds,
    running: worker.running,
    most: config.MAX_TASKS,
    connected: worker.isConnected,
  }));
  const tracing = tracingOf(config);
  const parts = compose({
    client,
    endpoint,
    implementations,
    env,
    leaseTimeMs,
    log,
    files,
    fetchPublic: publicFetch(env.FILES_FROM_PRIVATE === "1"),
    stats: reports?.stats,
    observers: [...(reports ? [workerReports(reports)] : []), ...(files ? [sweepFiles(files, client, log)] : [])],
    inExecutions: [metrics],
    ...tracing,
    aroundAttempts: [...tracing.aroundAttempts, capturedState(CHECKED_EXECUTIONS[config.STATE_CHECKS]), strayErrors],
  });
  const queues = { maxTasks: config.MAX_TASKS, maxQueued: config.MAX_QUEUED };
  const intake = new TaskIntake({ ...parts, namespace, leaseTimeMs, log }, queues);
  const drainTimeoutMs = config.DRAIN_SECONDS * 1000;
  const options = { url: config.RESONATE_URL, namespace, group, drainTimeoutMs };
  const worker = new Worker({ ...parts, client, intake, log }, options);
  return worker;
}

/** The group whose tasks this worker takes. @throws {Error} if no implementation is of that group */
function groupOf(config: WorkerConfig, implementations: readonly Implementation[], log: Logger): string {
  const { RESONATE_GROUP, WORKER_GROUP: group = RESONATE_GROUP } = config;
  const others = implementations.filter(({ job }) => (job.group ?? RESONATE_GROUP) !== group);
  if (others.length === 0) return group;
  const kinds = others.map(({ job }) => job.kind);
  if (others.length === implementations.length) {
    throw new Error(
      `WORKER_GROUP: this worker takes the jobs of the group ${group}, and none of its kinds is of that group: ${kinds.join(", ")}`,
    );
  }
  log.info({ group, kinds }, "these kinds are run by workers of other groups");
  return group;
}

/** The reports to the edge, of this worker's `state`; undefined if the edge's address or key is not known. */
function reportsOf(
  { EDGE_URL, PUBLIC_URL, VIEW_KEY: key }: WorkerConfig,
  parts: { client: ResonateClient; namespace: string; log: Logger },
  state: () => WorkerState,
): EdgeReports | undefined {
  const url = EDGE_URL ?? PUBLIC_URL;
  return url && key ? new EdgeReports({ ...parts, url, key, state }) : undefined;
}

/** How traces are made: spans are, if there is a collector for them. */
function tracingOf({ OTEL_EXPORTER_OTLP_ENDPOINT: collector, RESONATE_URL, EDGE_URL, PUBLIC_URL }: WorkerConfig): {
  trace: WorkerFeature;
  aroundAttempts: readonly WorkerFeature[];
  currentSpan?: () => string | undefined;
} {
  if (!collector) return { trace: traceIds, aroundAttempts: [] };
  return {
    trace: spans([RESONATE_URL, EDGE_URL, PUBLIC_URL]),
    aroundAttempts: [attemptSpans],
    currentSpan: surroundingSpan,
  };
}
