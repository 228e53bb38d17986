import type { AnyJob } from "./job.ts";
import { range } from "./range.ts";
import { timer } from "./timer.ts";
import { weather } from "./weather.ts";

export * from "./job.ts";
export * from "./journal.ts";
export * from "./range.ts";
export * from "./timer.ts";
export * from "./weather.ts";

/** Every job of the deployment. */
export const JOBS: readonly AnyJob[] = [weather, range, timer];
