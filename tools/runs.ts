/** The durable functions of the deployment; only workers import them. */
import type { Implementation } from "../core/index.ts";
import { sleepUntilDue } from "./timer/timer.run.ts";
import { gatherMonth } from "./weather/month.run.ts";
import { gatherRange } from "./weather/range.run.ts";

export const runs: readonly Implementation[] = [gatherMonth, gatherRange, sleepUntilDue];
