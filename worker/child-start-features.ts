/** What features do to the jobs that durable functions start and cancel. */
import type { Job } from "../core/author/index.ts";
import type { JobFeature, WorkerStats } from "../core/jobs/index.ts";
import { endsWithParent } from "../features/child-jobs/start.ts";
import { claims } from "../features/claims/start.ts";
import { cleanUp } from "../features/clean-up/start.ts";
import { labels } from "../features/labels/start.ts";
import { reportStarts } from "../features/operators/start.ts";
import { oncePerInterval } from "../features/operators/starts.ts";
import { order } from "../features/order/start.ts";
import { resume } from "../features/resume/start.ts";
import { retention } from "../features/retention/start.ts";
import { storageLimit } from "../features/storage-limit/start.ts";
import { trace } from "../features/trace/start.ts";

/** The features for these kinds, in the order in which they act. `stats`: what operators are told, if there are any. */
export function childStartFeatures(jobs: readonly Job[], stats: WorkerStats | undefined): JobFeature[] {
  const some = (uses: (job: Job) => unknown) => jobs.some(uses);
  const features: (JobFeature | false | undefined)[] = [
    stats && reportStarts(oncePerInterval((kind, job) => stats.waits({ job, kind, state: "worker" }))),
    labels,
    endsWithParent,
    some(({ shared }) => shared) && claims,
    some(({ keepFor }) => keepFor !== undefined) && retention,
    resume,
    // Moves the time-out, which a position has as well.
    cleanUp,
    some(({ concurrency }) => concurrency) && order(),
    trace,
    storageLimit(),
  ];
  return features.filter((feature) => typeof feature === "object");
}
