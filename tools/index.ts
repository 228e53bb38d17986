/** The tools of the deployment, in the order of `tools/list`. */
import type { Tool } from "../core/index.ts";
import { getTimerStatus, setTimer, timerTool } from "./timer/timer.ts";
import { startGathering, weatherData } from "./weather/month.ts";
import { weatherRange } from "./weather/range.ts";

export const tools: readonly Tool[] = [startGathering, setTimer, getTimerStatus, weatherData, weatherRange, timerTool];
