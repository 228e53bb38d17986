/** Notes on a job which other job ends it. */
import type { JobFeature } from "../../core/jobs/index.ts";
import { PARENT_TAG } from "../../core/resonate/index.ts";

declare module "../../core/jobs/job-feature.ts" {
  interface Requester {
    /** Whether the jobs that a durable function starts end if its own job ends without a result. */
    readonly endsChildren?: boolean;
  }
}

export const endsWithParent: JobFeature = {
  start({ by: { parent, endsChildren }, tags }, next) {
    if (endsChildren && parent !== undefined) tags[PARENT_TAG] = parent;
    return next();
  },
};
