/** The metrics of the worker, in the Prometheus text format. The label `job` is the kind of job. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Metrics } from "../../core/author/context.ts";
import { type Instruments, type LineLog, reasonOf } from "../../worker/execution/instruments.ts";
import { inSpan, spanOf, surroundingSpan } from "../trace/spans.ts";

export const registry = new Registry();
const registers = [registry];
collectDefaultMetrics({ register: registry });

const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
  new Counter({ name: `durable_worker_${name}`, help, labelNames, registers });
const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
  new Gauge({ name: `durable_worker_${name}`, help, labelNames, registers });

export const connected = gauge("connected", "1 while jobs can arrive from the Resonate server.");
export const running = gauge("tasks_running", "Jobs that execute at the moment; sleeping jobs do not count.", "job");
export const waiting = gauge("tasks_waiting", "Jobs dispatched to this worker that wait for a slot.", "job");

const settled = counter("jobs_settled_total", "Jobs that ended here; outcome: complete, failed.", "job", "outcome");
const retries = counter("job_retries_total", "Failed attempts of steps that are retried.", "job");
const leasesLost = counter(
  "leases_lost_total",
  "Jobs left because their lease had lapsed or they had been settled elsewhere.",
  "job",
);
export const released = counter("tasks_handed_back_total", "Jobs released when this worker stopped.", "job");
export const unhandled = counter(
  "tasks_without_function_total",
  "Jobs released because this worker lacks their function, or its version.",
  "job",
);

const BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** The metrics of durable functions that a call did not fit, because each is logged once. */
const misfits = new Set<string>();

/** Records what durable functions count and measure. A call that does not fit its metric is logged: it must not fail a job. */
function jobMetrics(log: LineLog): Metrics {
  const fitting = (metric: string, record: () => void) => {
    try {
      record();
    } catch (error) {
      if (!misfits.has(metric)) log.warn({ metric, reason: reasonOf(error) }, "not recorded in the metrics");
      misfits.add(metric);
    }
  };
  return {
    count(name, labels = {}) {
      const metric = `durable_job_${name}_total`;
      fitting(metric, () => own(Counter, metric, labels, {}).inc(labels));
    },
    observe(name, seconds, labels = {}) {
      const metric = `durable_job_${name}_seconds`;
      fitting(metric, () => own(Histogram, metric, labels, { buckets: BUCKETS }).observe(labels, seconds));
    },
  };
}

function own<M extends Counter | Histogram>(
  Kind: new (options: { name: string; help: string; labelNames: string[]; registers: Registry[] }) => M,
  name: string,
  labels: Record<string, string>,
  options: object,
): M {
  const known = registry.getSingleMetric(name) as M | undefined;
  return (
    known ?? new Kind({ name, help: "Of a durable function.", labelNames: Object.keys(labels), registers, ...options })
  );
}

/** `status`: the server's answer, or `none`. Repeated calls are counted each time. */
export const resonateRequests = counter(
  "resonate_requests_total",
  "Calls to the Resonate server that advance jobs; status: its answer, or none.",
  "kind",
  "status",
);

/** The instruments of executions in this process. */
export const instruments: Instruments = {
  metrics: jobMetrics,
  settled: (job, outcome) => settled.inc({ job, outcome }),
  retried: (job) => retries.inc({ job }),
  leaseLost: (job) => leasesLost.inc({ job }),
  spanOf,
  surroundingSpan,
  inSpan,
};
