/** A server with timers only. */
import { createEdge } from "../../../functions/edge.ts";
import { getTimerStatus, setTimer, timerTool } from "../../../tools/timer/timer.ts";

export { CallerObject, Listener } from "../../../functions/edge.ts";
export { ResonateObject, RunnerObject } from "../../../functions/objects.ts";

export default createEdge({ name: "egg-timer", version: "2.0.0", tools: [setTimer, getTimerStatus, timerTool] });
