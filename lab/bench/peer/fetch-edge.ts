/** The edge with the tool that both servers have. */
import { createEdge } from "../../../functions/edge.ts";
import { fetchOnce } from "./fetch.ts";

export { CallerObject, Listener } from "../../../functions/edge.ts";

export default createEdge({ name: "bench", version: "1.0.0", tools: [fetchOnce] });

/** The shared configuration binds this class; it is unused here. */
export class ResonateObject {}
export class RunnerObject {}
