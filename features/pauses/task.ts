/**
 * Suspends jobs of paused kinds, and other jobs that operators have paused. Each waits for the promise of its pause, so the server
 * wakes all of them when the pause is over. Until then a paused job holds no lease and, on servers that let a job wait for
 * promises that are not its own, costs no request.
 */
import type { WorkerFeature } from "../../core/feature.ts";
import type { Pauses } from "./pauses.ts";

export const pausesJobs = (pauses: Pauses): WorkerFeature => ({
  name: "pauses",
  async task({ name, kind, lease, log }, next) {
    for (;;) {
      const pause = await pauses.find(name, kind);
      if (pause === undefined) return next();
      if (await lease.suspend([pause])) {
        log.info("job paused");
        return "asleep";
      }
      // The pause is over, but another may have begun.
      pauses.forget(kind);
    }
  },
});
