/** An edge whose timer has a schedule in its definition, at the time in the variable `AT`. */
import { createEdge } from "../../../functions/edge.ts";
import { setTimer } from "../../../tools/timer/timer.ts";

export { CallerObject, Listener } from "../../../functions/edge.ts";
export { ResonateObject, RunnerObject } from "../../../functions/objects.ts";

const { env }: { env: { AT: string } } = await import("cloudflare:workers" as string);
const schedule = { at: env.AT, arguments: { timer_name: "nightly", seconds: 1 } };

export default createEdge({ name: "scheduled", version: "0.0.0", tools: [{ ...setTimer, schedule }] });
