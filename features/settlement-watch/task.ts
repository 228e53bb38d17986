/** Aborts an execution when its job is settled by a cancellation or by another worker. */
import type { WorkerFeature } from "../../core/feature.ts";
import type { PromiseWatch } from "../../core/resonate/index.ts";
import { SettlementWatch } from "./settlement-watch.ts";

declare module "../../core/jobs/task-feature.ts" {
  interface JobRun {
    settlementWatch?: SettlementWatch;
  }
}

export const settlementWatch = (watcher: Pick<PromiseWatch, "watch" | "leave">): WorkerFeature => ({
  name: "settlement-watch",
  async run(run, next) {
    run.settlementWatch = new SettlementWatch(run.promise, watcher, run.stop);
    try {
      return await next();
    } finally {
      run.settlementWatch.close();
    }
  },
  observes: ["startsJob", "attemptFailed"],
  observe(event) {
    // A cancelled job must neither start other jobs nor try a step again.
    const isDue = event.type === "startsJob" || (event.type === "attemptFailed" && event.retryInMs !== undefined);
    if (isDue) event.run.settlementWatch?.start();
  },
});
