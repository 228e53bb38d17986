/** An edge whose definition of a timer has a schedule: at the time that the variable `AT` says. */
import { createEdge } from "../../../functions/edge.ts";
import { setTimer } from "../../../tools/timer/timer.ts";

export { CallerObject, Listener } from "../../../functions/edge.ts";
export { ResonateObject, RunnerObject } from "../../../functions/objects.ts";

const { env }: { env: { AT: string } } = await import("cloudflare:workers" as string);
const schedule = { at: env.AT, arguments: { timer_name: "nightly", seconds: 1 } };

export default createEdge({ name: "scheduled", version: "0.0.0", tools: [{ ...setTimer, schedule }] });
