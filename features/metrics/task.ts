/** The metrics of a worker, in the Prometheus text format. The label `job` is the kind of job. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Metrics } from "../../core/author/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { type LineLog, reasonOf, type TaskEvent } from "../../core/jobs/index.ts";

export const registry = new Registry();
const registers = [registry];
collectDefaultMetrics({ register: registry });

const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
  new Counter({ name: `durable_worker_${name}`, help, labelNames, registers });
const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
  new Gauge({ name: `durable_worker_${name}`, help, labelNames, registers });

const connected = gauge("connected", "1 while jobs can arrive from the Resonate server.");
const running = gauge("tasks_running", "Jobs that execute at the moment; sleeping jobs do not count.", "job");
const waiting = gauge("tasks_waiting", "Jobs dispatched to this worker that wait for a slot.", "job");
const settled = counter("jobs_settled_total", "Jobs that ended here; outcome: complete, failed.", "job", "outcome");
const retries = counter("job_retries_total", "Failed attempts of steps that are retried.", "job");
const leasesLost = counter(
  "leases_lost_total",
  "Jobs left because their lease had lapsed or they had been settled elsewhere.",
  "job",
);
const released = counter("tasks_released_total", "Jobs released when this worker stopped.", "job");
const unhandled = counter(
  "tasks_without_function_total",
  "Jobs released because this worker lacks their function, or its version.",
  "job",
);
const resonateRequests = counter(
  "resonate_requests_total",
  "Calls to the Resonate server that advance jobs; status: its answer, or none.",
  "kind",
  "status",
);

/** Counts a request to the Resonate server; repeated ones each time. `status`: of the answer; undefined without one. */
export const countRequest = (kind: string, status: number | undefined): void =>
  resonateRequests.inc({ kind, status: status ?? "none" });

export const metrics: WorkerFeature = {
  name: "metrics",
  run(run, next) {
    run.runtime.metrics = jobMetrics(run.log);
    return next();
  },
  observe: record,
  routes(app) {
    app.get("/metrics", async (c) => c.body(await registry.metrics(), 200, { "Content-Type": registry.contentType }));
  },
};

function record(event: TaskEvent): void {
  switch (event.type) {
    case "connection":
      connected.set(event.isOpen ? 1 : 0);
      break;
    case "queued":
      waiting.inc({ job: event.kind }, event.change);
      break;
    case "executing":
      running.inc({ job: event.kind }, event.change);
      break;
    case "unhandled":
      unhandled.inc({ job: event.kind });
      break;
    case "released":
      released.inc({ job: event.kind });
      break;
    case "attemptFailed":
      if (event.retryInMs !== undefined) retries.inc({ job: event.run.kind });
      break;
    case "leaseLost":
      leasesLost.inc({ job: event.task.kind });
      break;
    case "ended":
      // A cancelled job has not ended here.
      if (event.outcome !== "cancelled") settled.inc({ job: event.task.kind, outcome: event.outcome });
      break;
  }
}

const BUCKETS_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** The metrics of durable functions that a call did not fit, because each is logged once. */
const loggedMetrics = new Set<string>();

/** Records what durable functions count and measure. A call that does not fit its metric is logged: it must not fail a job. */
export function jobMetrics(log: LineLog): Metrics {
  const limitSeries = (metric: string, record: () => void) => {
    try {
      record();
    } catch (error) {
      if (!loggedMetrics.has(metric)) log.warn({ metric, reason: reasonOf(error) }, "not recorded in the metrics");
      loggedMetrics.add(metric);
    }
  };
  return {
    count(name, labels = {}) {
      const metric = `durable_job_${name}_total`;
      limitSeries(metric, () => metricOf(Counter, metric, labels, {}).inc(labels));
    },
    observe(name, seconds, labels = {}) {
      const metric = `durable_job_${name}_seconds`;
      limitSeries(metric, () =>
        metricOf(Histogram, metric, labels, { buckets: BUCKETS_SECONDS }).observe(labels, seconds),
      );
    },
  };
}

/** The metric with this name, which is created with the labels of its first call. */
function metricOf<M extends Counter | Histogram>(
  Kind: new (options: { name: string; help: string; labelNames: string[]; registers: Registry[] }) => M,
  name: string,
  labels: Record<string, string>,
  options: object,
): M {
  const existing = registry.getSingleMetric(name) as M | undefined;
  return (
    existing ??
    new Kind({ name, help: "Of a durable function.", labelNames: Object.keys(labels), registers, ...options })
  );
}
