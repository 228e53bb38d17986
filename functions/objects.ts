/** The Durable Objects of this deployment beside the listener. The paths are those of the bundle, in which this lies at the root. */
import { resonateObject, runnerObject } from "./app/lazy-objects.ts";

/** The Resonate server of this deployment. */
export const ResonateObject = resonateObject(() => import("./modules/resonate.js"));

/** Runs the jobs of this deployment. */
export const RunnerObject = runnerObject(() => import("./modules/runner.js"));
