import { awaitResult, probeStatus } from "./jobs.ts";
import { getTimerStatus, setTimer } from "./timer.ts";
import type { Tool } from "./tool.ts";
import { startGathering } from "./weather.ts";

/** The tools, in the order they are listed. */
export const TOOLS: readonly Tool[] = [startGathering, probeStatus, awaitResult, setTimer, getTimerStatus];
