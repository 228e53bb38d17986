/** Enters jobs in the common record of callers without authentication, so that events report them. */
import { type CallerRecords, entryOfStart, type JobFeature } from "../../core/jobs/index.ts";

const NO_LIMITS = { jobs: 0, bytes: 0 };

/** `areEventsWanted`: whether somebody wants events of jobs. */
export const recordForEvents = (records: CallerRecords, areEventsWanted: () => boolean): JobFeature => ({
  async start(start, next) {
    const { existing, jobs, job, by } = start;
    const isOfEdge = job.runs === "edge";
    // All starts would queue at this one shared record, so a start that no event reports skips it.
    if (existing || jobs.record || !(isOfEdge || areEventsWanted())) return next();
    const recorded = records
      .of(by.key)
      .reserve(entryOfStart(start), NO_LIMITS)
      .catch((error) => {
        // Without the entry no event reports this job. A job that the record itself looks after must be in it.
        if (isOfEdge) throw error;
      });
    recorded.catch(() => {}); // It is awaited below, unless another error comes first.
    const promise = await next();
    await recorded;
    return promise;
  },
});
