/** The edge of two wrapped servers. Their options and tools come from the binding `WRAP_PAIR`. */
import { createEdge } from "../../../functions/edge.ts";
import { type Snapshot, type WrapOptions, wrapServer } from "../../../wrap/index.ts";

export { CallerObject, Listener } from "../../../functions/edge.ts";
export { ResonateObject, RunnerObject } from "../../../functions/objects.ts";

const { env } = await import("cloudflare:workers" as string);
const pair: { options: WrapOptions; snapshot: Snapshot }[] = JSON.parse(env.WRAP_PAIR);
const tools = pair.flatMap(({ options, snapshot }) => wrapServer(options).tools(snapshot));

export default createEdge({ name: "pair", title: "Pair", version: "1.0.0", tools });
