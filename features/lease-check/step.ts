/** Checks before each attempt at a step that its job is still this worker's, which it may have ceased to be during a wait. */
import { LeaseLost } from "../../core/engine/runtime.ts";
import type { StepFeature } from "../../core/engine/step-feature.ts";
import type { LeaseRef } from "../../core/resonate/connection/protocol.ts";
import { reasonOf } from "../../worker/execution/instruments.ts";

export const LAPSED = "its lease had lapsed";

export interface Leases {
  /** Whether this worker has the lease on a task. @throws {ResonateUnavailable} */
  isOurs(task: LeaseRef): Promise<boolean>;
}

export const leaseCheck = (leases: Leases): StepFeature => ({
  async attempt({ lease }, next) {
    const isOurs = await leases.isOurs({ id: lease.taskId, version: lease.version }).catch((error) => {
      throw new LeaseLost(reasonOf(error), { cause: error });
    });
    // Another worker may have the job by now, and the work would be done twice.
    if (!isOurs) throw new LeaseLost(LAPSED);
    return next();
  },
});
