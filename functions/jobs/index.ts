import type { JobKind } from "./job.ts";
import { timer } from "./timer.ts";
import { weather } from "./weather.ts";

export * from "./job.ts";
export * from "./timer.ts";
export * from "./weather.ts";

/** Every job of the deployment. */
export const JOBS: readonly JobKind[] = [weather, timer];
