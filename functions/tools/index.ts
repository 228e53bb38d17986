import { awaitResult, cancelJob, probeStatus } from "./jobs.ts";
import { listJobs } from "./list.ts";
import { weatherRange } from "./range.ts";
import { getTimerStatus, setTimer, timerTool } from "./timer.ts";
import type { Tool } from "./tool.ts";
import { startGathering, weatherData } from "./weather.ts";

/** The tools, in the order they are listed. */
export const TOOLS: readonly Tool[] = [
  startGathering,
  probeStatus,
  awaitResult,
  cancelJob,
  listJobs,
  setTimer,
  getTimerStatus,
  weatherData,
  weatherRange,
  timerTool,
];
