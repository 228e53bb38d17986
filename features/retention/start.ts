/** Notes how long a job is kept after its end, if its definition says so. */
import type { JobFeature } from "../../core/jobs/index.ts";
import { RETENTION_TAG } from "../../core/resonate/index.ts";

export const retention: JobFeature = {
  start({ job, tags }, next) {
    if (job.keepFor !== undefined) tags[RETENTION_TAG] = String(job.keepFor);
    return next();
  },
};
