import { timer, weather } from "../../functions/jobs/index.ts";
import type { OpenMeteo } from "../open-meteo.ts";
import { type DurableFunction, durable } from "./durable.ts";
import { sleepUntilDue } from "./timer.ts";
import { gatherMonth } from "./weather.ts";

/** Every job this worker can run. */
export function durableFunctions(archive: OpenMeteo): DurableFunction[] {
  return [durable(weather, gatherMonth(archive)), durable(timer, sleepUntilDue)];
}
