/** Durable Objects of this deployment. */
import { resonateObject, runnerObject } from "./objects/lazy-objects.ts";

export const ResonateObject = resonateObject(() => import("../server/object/object-server.ts"));

export const RunnerObject = runnerObject(
  () => import("../worker/runner/runner-server.ts"),
  () => import("../tools/runs.ts"),
);
