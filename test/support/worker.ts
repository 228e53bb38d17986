import { startWorker as start } from "../../testing/stack/worker-process.ts";
import { programOf } from "./programs.ts";

/** Starts a worker from the bundle of its program, and waits until jobs can reach it. */
export const startWorker: typeof start = (env, { script = "worker/main.ts", ...options } = {}) =>
  start(env, { ...options, script: programOf(script) });
