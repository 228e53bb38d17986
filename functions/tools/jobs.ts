import * as z from "zod";
import { awaitSettled } from "../await.ts";
import type { DurablePromise } from "../resonate/store.ts";
import { JobView, viewOf } from "../status.ts";
import { jobNames, lenientNumber, lenientOptional } from "./arguments.ts";
import { defineTool } from "./tool.ts";

/** Below what common clients give a call before they give up, a minute. */
const DEFAULT_TIMEOUT = 45;
const MAX_TIMEOUT = 300;

/** Milliseconds between progress notifications. */
const PROGRESS_INTERVAL = 5_000;

export const probeStatus = defineTool({
  name: "probe_status",
  title: "Probe job status",
  description:
    "Look at jobs without waiting: whether each is running, complete (with its result), failed (with the reason), " +
    "cancelled, timed_out or not_found. Works for jobs started in any session. To wait for jobs, use await_result.",
  input: z.object({ job_names: jobNames }),
  output: z.object({ statuses: z.array(JobView).describe("One entry a name, in the order asked.") }),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  async run({ job_names }, { store, signal }) {
    return {
      statuses: await Promise.all(job_names.map(async (name) => viewOf(name, await store.get(name, signal)))),
    };
  },
});

export const awaitResult = defineTool({
  name: "await_result",
  title: "Await job results",
  description:
    "Wait for jobs and return their results. Returns as soon as all have settled, or after timeout_seconds with the " +
    "names still running: those go on, and can be awaited again, now or in a later session. Use probe_status to look " +
    "without waiting.",
  input: z.object({
    job_names: jobNames,
    timeout_seconds: lenientOptional(lenientNumber(z.number().min(1).max(MAX_TIMEOUT))).describe(
      `How long to wait, a number of seconds from 1 to ${MAX_TIMEOUT}; ${DEFAULT_TIMEOUT} when left out.`,
    ),
  }),
  output: z.object({
    results: z.record(z.string(), z.unknown()).describe("The result of each job that is complete, by job name."),
    errors: z.record(z.string(), z.string()).describe("Why a job has no result, by job name."),
    running: z.array(z.string()).describe("The names that had not settled in time."),
  }),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  waits: true,
  async run({ job_names, timeout_seconds = DEFAULT_TIMEOUT }, { store, now, signal, reportProgress }) {
    const results = new Map<string, unknown>();
    const errors = new Map<string, string>();
    const record = (view: JobView) => {
      if (view.status === "complete") results.set(view.job_name, view.result ?? null);
      else errors.set(view.job_name, `${view.status}: ${view.error}`);
    };

    const timeout = timeout_seconds * 1_000;
    const total = job_names.length;
    let settled = 0;
    const report = () => {
      // The share of the time that has passed makes each report greater than the one before.
      const waited = Math.min((Date.now() - now) / timeout, 0.99);
      reportProgress?.(settled + (settled < total ? waited : 0), total, `${settled} of ${total} jobs settled`);
    };

    const ticker = reportProgress && setInterval(report, PROGRESS_INTERVAL);
    try {
      const running = await awaitSettled(store, job_names, {
        timeout,
        signal,
        onSettled(name, promise) {
          record(viewOf(name, promise));
          settled += 1;
          report();
        },
      });
      return { results: Object.fromEntries(results), errors: Object.fromEntries(errors), running };
    } finally {
      clearInterval(ticker);
    }
  },
});

export const cancelJob = defineTool({
  name: "cancel_job",
  title: "Cancel jobs",
  description:
    "Stop jobs for good: a timer that is set, a gathering that runs or retries. What has finished is not changed. " +
    "A cancelled job can be started again with the tool that started it. A gathering that others started too goes on " +
    "for them.",
  input: z.object({ job_names: jobNames }),
  output: z.object({
    cancelled: z.array(z.string()).describe("Stopped now, or before."),
    given_up: z.array(z.string()).optional().describe("Going on, but only for others who started them too."),
    already_finished: z.array(z.string()).describe("Had ended by itself before it could be stopped."),
    not_found: z.array(z.string()).describe("No such job, or none that you started."),
  }),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  async run({ job_names }, { store }) {
    const promises = await Promise.all(job_names.map((name) => store.cancel(name)));
    const outcomes = Object.groupBy(job_names, (_name, i) => outcomeOf(promises[i]));
    return { cancelled: [], already_finished: [], not_found: [], ...outcomes };
  },
});

type Outcome = "cancelled" | "given_up" | "already_finished" | "not_found";

function outcomeOf(promise: DurablePromise | undefined): Outcome {
  if (!promise) return "not_found";
  if (promise.state === "pending") return "given_up";
  return promise.state === "rejected_canceled" ? "cancelled" : "already_finished";
}
