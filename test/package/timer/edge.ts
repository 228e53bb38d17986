/** A server that has timers and nothing else. */
import { createEdge } from "../../../functions/edge.ts";
import { getTimerStatus, setTimer, timerTool } from "../../../tools/timer/timer.ts";

export { CallerObject, Listener } from "../../../functions/edge.ts";
export { ResonateObject } from "../../../functions/objects/resonate-object.ts";
export { RunnerObject } from "../../../functions/objects/runner-object.ts";

export default createEdge({ name: "egg-timer", version: "2.0.0", tools: [setTimer, getTimerStatus, timerTool] });
