/** Reports to the edge at once what its callers' objects would otherwise learn later, and what operators want to know. */
import type { WorkerFeature } from "../../core/feature.ts";
import type { EdgeReports } from "./edge-reports.ts";

export const workerReports = (reports: EdgeReports): WorkerFeature => ({
  name: "worker-reports",
  observe(event) {
    if (event.type === "startedJob") reports.started(event.promise.id);
    // The edge itself knows the jobs that it has cancelled.
    else if (event.type === "ended" && event.outcome !== "cancelled") reports.ended(event.task.promise);
  },
  open: () => reports.start(),
  close: () => reports.close(),
});
