import { createEdge } from "../../../functions/edge.ts";
import { brew, dry, serve, wash } from "./brewing.ts";

export { CallerObject, Listener } from "../../../functions/edge.ts";
export { ResonateObject, RunnerObject } from "../../../functions/objects.ts";

export default createEdge({ name: "brewing", version: "0.0.0", tools: [brew, dry, serve, wash] });
