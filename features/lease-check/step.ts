/** Checks before each attempt at a step that its job is still this worker's, which it may have ceased to be during a wait. */
import { LeaseLost } from "../../core/engine/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { reasonOf } from "../../core/jobs/index.ts";
import type { LeaseRef } from "../../core/resonate/index.ts";

export interface Leases {
  /** Whether this worker has the lease on a task. @throws {ResonateUnavailable} */
  isOurs(task: LeaseRef): Promise<boolean>;
}

export const leaseCheck = (leases: Leases): WorkerFeature => ({
  name: "lease-check",
  async attempt({ lease }, next) {
    const isOurs = await leases.isOurs({ id: lease.taskId, version: lease.version }).catch((error) => {
      throw new LeaseLost(reasonOf(error), { reason: "unreachable", cause: error });
    });
    // Another worker may have the job by now, and the work would be done twice.
    if (!isOurs) throw new LeaseLost("its lease had lapsed", { reason: "lapsed" });
    return next();
  },
});
