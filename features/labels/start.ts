/** Stores the labels of a job with its promise: those of the request, or else of the attempt before it, and of its definition. */
import { type JobFeature, labelsOf } from "../../core/jobs/index.ts";
import { labelsIn } from "./labels.ts";

declare module "../../core/jobs/job-feature.ts" {
  interface Requester {
    /** The labels of the jobs that the request starts. */
    readonly labels?: readonly string[];
  }
}

declare module "../../core/jobs/job-call.ts" {
  interface JobCall {
    /** The labels of a job that belongs to one caller. */
    labels?: readonly string[];
  }
}

export const labels: JobFeature = {
  async start({ job, args, by, previous, existing, call }, next) {
    if (existing || !(by.labels || previous || job.labels)) return next();
    const ofRequest = by.labels?.length ? by.labels : labelsOf(previous?.attempt.call);
    const all = labelsIn([...ofRequest, ...(job.labels?.(args) ?? [])]);
    // Callers of a shared job must not see each other's labels.
    if (all.length > 0 && !(job.shared && (by.key !== "" || by.parent !== undefined))) call.labels = all;
    return next();
  },
  needsJob: ({ labels = [] }) => labels.length > 0,
};
