import { runnerObject } from "./objects.ts";

/** Runs the jobs of this deployment. */
export const RunnerObject = runnerObject(() => import("./modules/runner.js"));
