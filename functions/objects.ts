/** Durable Objects of this deployment. The paths are those in the bundle, where this file is at the root. */
import { resonateObject, runnerObject } from "./objects/lazy-objects.ts";

export const ResonateObject = resonateObject(() => import("./modules/resonate.js"));

export const RunnerObject = runnerObject(() => import("./modules/runner.js"));
