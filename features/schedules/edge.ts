import type { EdgeFeature } from "../../core/feature.ts";

/** Makes the schedules of the deployment's definitions. `make` does nothing once they are made. */
export const schedules = (make: () => Promise<void>): EdgeFeature => ({
  name: "schedules",
  middleware: (c, next) => {
    c.executionCtx.waitUntil(make());
    return next();
  },
});
