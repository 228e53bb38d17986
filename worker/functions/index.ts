import { range, timer, weather } from "../../functions/jobs/index.ts";
import type { RemoteStore } from "../../functions/resonate/store.ts";
import type { OpenMeteo } from "../open-meteo.ts";
import { type DurableFunction, durable } from "./durable.ts";
import { gatherRange } from "./range.ts";
import { sleepUntilDue } from "./timer.ts";
import { gatherMonth } from "./weather.ts";

/** Every job this worker can run. */
export function durableFunctions(archive: OpenMeteo, store: RemoteStore): DurableFunction[] {
  return [durable(weather, gatherMonth(archive)), durable(range, gatherRange(store)), durable(timer, sleepUntilDue)];
}
