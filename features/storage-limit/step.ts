/** Refuses records beyond what a job may store. */
import { RecordRefused } from "../../core/engine/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { MAX_JOB_BYTES } from "../../core/resonate/index.ts";

/** More than any record has. */
const MAX_RECORD_BYTES = 2_000_000;

/** Records up to this size are always stored, so that a job that has stored as much as it may can still end. */
const SMALL_RECORD_BYTES = 2_000;

export const jobStorageLimit: WorkerFeature = {
  name: "storage-limit",
  recordFromBytes: MAX_JOB_BYTES - MAX_RECORD_BYTES,
  record({ bytes, storedBytes }, next) {
    if (bytes <= SMALL_RECORD_BYTES || storedBytes + bytes <= MAX_JOB_BYTES) return next();
    throw new RecordRefused(
      `the job has stored ${MAX_JOB_BYTES} bytes, as many as one may. Put the data where it belongs (a bucket, a database) and ` +
        "store its address, or divide the work into several jobs",
    );
  },
};
