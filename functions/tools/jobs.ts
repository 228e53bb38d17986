import * as z from "zod";
import { awaitSettled } from "../await.ts";
import { JobStatus, type JobView, viewOf } from "../status.ts";
import { jobNames, lenientNumber, lenientOptional } from "./arguments.ts";
import { defineTool } from "./tool.ts";

/** Below what common clients give a call before they give up, a minute. */
const DEFAULT_TIMEOUT = 45;
const MAX_TIMEOUT = 300;

/** Milliseconds between progress notifications. */
const PROGRESS_INTERVAL = 5_000;

const jobView = z.object({
  job_name: z.string(),
  status: JobStatus,
  result: z.unknown().optional().describe("What the job produced, when complete."),
  error: z.string().optional().describe("Why there is no result."),
  started_at: z.string().optional().describe("ISO 8601, UTC."),
  finished_at: z.string().optional().describe("ISO 8601, UTC."),
});

export const probeStatus = defineTool({
  name: "probe_status",
  title: "Probe job status",
  description:
    "Look at jobs without waiting: whether each is running, complete (with its result), failed (with the reason), " +
    "cancelled, timed_out or not_found. Works for jobs started in any session. To wait for jobs, use await_result.",
  input: z.object({ job_names: jobNames }),
  output: z.object({ statuses: z.array(jobView).describe("One entry a name, in the order asked.") }),
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
    const results: Record<string, unknown> = {};
    const errors: Record<string, string> = {};
    const record = (view: JobView) => {
      if (view.status === "complete") results[view.job_name] = view.result ?? null;
      else errors[view.job_name] = `${view.status}: ${view.error}`;
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
      return { results, errors, running };
    } finally {
      clearInterval(ticker);
    }
  },
});
