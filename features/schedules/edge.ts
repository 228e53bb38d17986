import type { EdgeFeature } from "../../core/feature.ts";
import type { EdgeLog } from "../../functions/http/log.ts";

/** When it is tried again: after a failure, and if the request that tried has ended without an outcome; in milliseconds. */
const RETRY_MS = 1_000;
const TURN_MS = 30_000;

/** Has the schedules of the deployment's definitions made, once. `deploy` makes them; after a failure a later request tries again. */
export function schedules(deploy: () => Promise<void>, log: Pick<EdgeLog, "warn">): EdgeFeature {
  let dueAt = 0;
  const deployOnce = async () => {
    if (Date.now() < dueAt) return;
    dueAt = Date.now() + TURN_MS;
    try {
      await deploy();
      dueAt = Number.POSITIVE_INFINITY;
    } catch (error) {
      dueAt = Date.now() + RETRY_MS;
      log.warn("schedules of definitions are not made yet", { reason: String((error as Error).message) });
    }
  };
  return {
    name: "schedules",
    middleware: (c, next) => {
      c.executionCtx.waitUntil(deployOnce());
      return next();
    },
  };
}
