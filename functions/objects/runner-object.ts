import { runnerObject } from "./load.ts";

/** Runs the jobs of this deployment. */
export const RunnerObject = runnerObject(() => import("../modules/runner.js"));
