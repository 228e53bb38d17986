/** A store of jobs with the features that a deployment has, for tests that start and cancel jobs without an edge. */
import type { Job } from "../../core/author/job.ts";
import type { JobFeature } from "../../core/jobs/job-feature.ts";
import { RemoteStore } from "../../core/jobs/remote-store.ts";
import type { JobsEndpoint } from "../../core/jobs/settlements.ts";
import { claims } from "../../features/claims/start.ts";
import { cleanUp } from "../../features/clean-up/start.ts";
import { labels } from "../../features/labels/start.ts";
import { order } from "../../features/order/start.ts";
import { resume } from "../../features/resume/start.ts";
import { retention } from "../../features/retention/start.ts";
import { storageLimit } from "../../features/storage-limit/start.ts";

interface Options extends NonNullable<Parameters<typeof RemoteStore.of>[3]> {
  /** Further features, in front of the common ones. */
  features?: readonly JobFeature[];
}

export function jobStore(
  endpoint: JobsEndpoint,
  jobs: readonly Job[],
  { features = [], ...options }: Options = {},
): RemoteStore {
  const common = [labels, storageLimit(), claims, resume, retention, cleanUp, order()];
  return RemoteStore.of(endpoint, jobs, [...features, ...common], options);
}
