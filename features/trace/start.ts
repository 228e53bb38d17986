/** Names the span that starts a job, so that the worker's spans are below it. */
import { TRACE_TAG } from "../../core/author/index.ts";
import type { JobFeature } from "../../core/jobs/index.ts";

declare module "../../core/jobs/job-feature.ts" {
  interface Requester {
    /** The span of the request, as a `traceparent`; undefined without tracing. */
    readonly traceparent?: () => string | undefined;
  }
}

export const trace: JobFeature = {
  start({ by, tags }, next) {
    const traceparent = by.traceparent?.();
    if (traceparent !== undefined) tags[TRACE_TAG] = traceparent;
    return next();
  },
};
