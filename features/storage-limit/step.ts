/** Refuses records beyond what a job may store. */
import { RecordRefused } from "../../core/engine/step-feature.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { MOST_OF_A_JOB } from "../../core/resonate/size.ts";

/** More than any record has. */
const MAX_RECORD_BYTES = 2_000_000;

/** Records up to this size are always stored, so that a job that has stored as much as it may can still end. */
const SMALL_RECORD_BYTES = 2_000;

export const jobStorageLimit: WorkerFeature = {
  name: "storage-limit",
  recordFromBytes: MOST_OF_A_JOB - MAX_RECORD_BYTES,
  record({ bytes, storedBytes }, next) {
    if (bytes <= SMALL_RECORD_BYTES || storedBytes + bytes <= MOST_OF_A_JOB) return next();
    throw new RecordRefused(
      `the job has stored ${MOST_OF_A_JOB} bytes, as many as one may. Put the data where it belongs (a bucket, a database) and ` +
        "store its address, or divide the work into several jobs",
    );
  },
};
