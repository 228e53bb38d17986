/** Reports a start of each kind to operators, who see by it whether workers take that kind. */
import type { JobFeature } from "../../core/jobs/index.ts";
import type { ReportStart } from "./starts.ts";

/** `report` must not reject. */
export const reportStarts = (report: ReportStart): JobFeature => ({
  async start({ job, id, existing, jobs }, next) {
    if (existing || job.runs === "edge") return next();
    const reported = report(job.kind, jobs.names.local(id));
    const promise = await next();
    await reported;
    return promise;
  },
});
