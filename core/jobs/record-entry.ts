/** The entries of jobs in their callers' records. */
import { encodeValue } from "../resonate/codec.ts";
import { sizeOf, sizeOfRead } from "../resonate/size.ts";
import { entryOf, labelsOf, type StartedJob } from "./caller-record.ts";
import type { DurablePromise } from "./durable-promise.ts";
import type { JobStart } from "./job-feature.ts";

/** The entry of a job that is about to be started. */
export function entryOfStart(start: JobStart): StartedJob {
  const { id, job, args, now, deadline, call } = start;
  start.param ??= encodeValue(call);
  return {
    id,
    kind: job.kind,
    state: "pending",
    startedAt: now,
    settledAt: null,
    due: job.expectedAt?.(args) ?? deadline,
    period: "",
    count: 0,
    bytes: sizeOf({ param: start.param, value: {} }),
    labels: labelsOf(call),
  };
}

/** The entry of a job whose promise has been read. */
export function entryOfJob({ record, job, state, call, ...read }: DurablePromise, key: string): StartedJob {
  const bytes = sizeOfRead({ ...read, headers: record.value.headers });
  return entryOf(record, key, {
    kind: job.kind,
    state,
    startedAt: Date.now(),
    bytes,
    labels: labelsOf(call),
  });
}
