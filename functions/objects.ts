/** The Durable Objects of this deployment beside the listener. The paths are those of the bundle, in which this lies at the root. */
import { resonateObject, runnerObject } from "./app/lazy-objects.ts";

export const ResonateObject = resonateObject(() => import("./modules/resonate.js"));

export const RunnerObject = runnerObject(() => import("./modules/runner.js"));
