/** Tells the worker how many bytes of files a job may store: the caller's limit, which child jobs take over. */
import type { JobFeature } from "../../core/jobs/index.ts";

declare module "../../core/jobs/job-feature.ts" {
  interface Requester {
    /** How many bytes of files each job that a durable function starts may store; 0 for any number. */
    readonly storage?: number;
  }
}

declare module "../../core/jobs/job-call.ts" {
  interface JobCall {
    /** How many bytes of files the job may store. */
    storage?: number;
  }
}

/** `maxBytes`: the limit of a job that its caller starts; 0 for any number. */
export const storageLimit = (maxBytes = 0): JobFeature => ({
  start({ by, call }, next) {
    const bytes = by.storage ?? maxBytes;
    if (bytes > 0) call.storage = bytes;
    return next();
  },
  needsJob: () => maxBytes > 0,
});
