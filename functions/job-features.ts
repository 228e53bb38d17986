/** What features do to the jobs that the edge starts and cancels, in the order in which they act. */
import type { Job } from "../core/author/index.ts";
import type { CallerRecords, JobFeature } from "../core/jobs/index.ts";
import { claims } from "../features/claims/start.ts";
import { cleanUp } from "../features/clean-up/start.ts";
import { recordForEvents } from "../features/events/start.ts";
import { labels } from "../features/labels/start.ts";
import { reportStarts } from "../features/operators/start.ts";
import type { ReportStart } from "../features/operators/starts.ts";
import { order } from "../features/order/start.ts";
import { quota } from "../features/quota/start.ts";
import { resume } from "../features/resume/start.ts";
import { retention } from "../features/retention/start.ts";
import { stoppedStarts } from "../features/stopped-starts/start.ts";
import { storageLimit } from "../features/storage-limit/start.ts";
import { trace } from "../features/trace/start.ts";

export interface JobFeatureOptions {
  jobs: readonly Job[];
  /** The records of the deployment's callers; undefined if it keeps none. */
  records: CallerRecords | undefined;
  /** Whether somebody wants events of callers without authentication. */
  areEventsWanted(): boolean;
  /** Reports a start to operators; undefined in a deployment without operators. */
  reportStart?: ReportStart | undefined;
  /** Whether operators have stopped new jobs; undefined in a deployment without operators. */
  areStartsStopped?: (() => Promise<boolean>) | undefined;
}

export function jobFeatures(options: JobFeatureOptions): JobFeature[] {
  const { jobs, records, areEventsWanted, reportStart, areStartsStopped } = options;
  const some = (uses: (job: Job) => unknown) => jobs.some(uses);
  const features: (JobFeature | false | undefined)[] = [
    // Comes before everything that writes.
    areStartsStopped && stoppedStarts(areStartsStopped),
    reportStart && reportStarts(reportStart),
    labels,
    some(({ shared }) => shared) && claims,
    some(({ keepFor }) => keepFor !== undefined) && retention,
    // Operators may have any job resume.
    resume,
    // Moves the time-out, which a position has as well.
    cleanUp,
    some(({ concurrency }) => concurrency) && order(),
    trace,
    records && records.limits.bytes > 0 && storageLimit(records.limits.bytes),
    // Count the bytes of the call, to which nothing is added afterwards.
    records && recordForEvents(records, areEventsWanted),
    records && quota(records),
  ];
  return features.filter((feature) => typeof feature === "object");
}
